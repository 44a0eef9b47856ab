"""What `queue_doctor` looks for and mends: rows that change together and do not agree (design 5.1)."""
