"""Django's PostgreSQL backend, for a pool that outlives a restart of the server."""
