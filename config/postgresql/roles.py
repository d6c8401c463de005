"""Names: of our database, of its three roles, and of the variables with their URLs.

This module imports nothing, so that the supervisor stays small.
"""

DATABASE = "tooltrail"
OWNER, APP, KEEPER = ROLES = ("tooltrail_owner", "tooltrail_app", "tooltrail_keeper")
VARIABLES = {"DATABASE_URL": APP, "DATABASE_OWNER_URL": OWNER, "DATABASE_KEEPER_URL": KEEPER}
"""Environment variables with the roles' URLs."""
