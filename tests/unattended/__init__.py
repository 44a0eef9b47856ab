"""The examples that run while nobody looks, end to end: real services, real servers, killed in the middle."""
