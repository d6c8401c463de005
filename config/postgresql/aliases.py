"""Names of Django's connections beside `default`, which is the application's.

Each logs in as the role of its name (`config.postgresql.database`). A process that was not given
the role's address does not have the connection.
"""

OWNER = "owner"
"""Owns the tables, and sees every tenant's rows."""
KEEPER = "keeper"
"""Signs the ledger, and erases payloads of a tenant."""
