"""The services outside that the examples call: each keeps what it was told, and counts what it did for whom."""
