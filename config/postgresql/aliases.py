"""Names of Django's connections besides `default`, which is the application's.

Each logs in as the role of its name (`config.postgresql.roles`). A process without the role's
URL does not have the connection.
"""

OWNER = "owner"
"""Owns the tables and sees the rows of all tenants."""
KEEPER = "keeper"
"""Signs the ledger and erases payloads of a tenant."""
