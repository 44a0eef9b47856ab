"""What `queue_doctor` looks for and mends among requests, records, votes, notices and the audit (design 5.1)."""
