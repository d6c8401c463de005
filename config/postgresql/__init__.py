"""Django's PostgreSQL backend with a pool of our own (docs/adr/0006)."""
