"""Django's PostgreSQL backend with our own connection pool (docs/adr/0006)."""
