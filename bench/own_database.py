"""A separate PostgreSQL for a bench, set up like an installation's; deleted with its folder."""

import os
import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path


@contextmanager
def own_database(folder: Path, *, settings: tuple[str, ...] = ()) -> Iterator[None]:
    """Start PostgreSQL in a folder with these settings, for Django to use until the block ends.

    Enter it before importing any module of the server.
    """
    folder.chmod(0o711)  # as root, PostgreSQL may run as another user
    os.environ |= {
        "TOOLTRAIL_VAR": str(folder / "var"),
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }
    from config.postgresql import database, roles
    from config.postgresql.embedded import EmbeddedPostgres

    server = EmbeddedPostgres(folder / "postgres", settings=settings)
    server.start()
    try:
        passwords = {role: secrets.token_urlsafe(16) for role in roles.ROLES}
        name = f"bench_{uuid.uuid4().hex[:8]}"
        database.initialise(server.admin_url, passwords, name)
        for variable, role in (
            ("DATABASE_URL", roles.APP),
            ("DATABASE_OWNER_URL", roles.OWNER),
            ("DATABASE_KEEPER_URL", roles.KEEPER),
        ):
            url = database.role_url(server.admin_url, role, passwords[role], name)
            os.environ[variable] = url
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connections

        from audit.index import partitions

        call_command("migrate", database="owner", verbosity=0)
        partitions.apply(partitions.missing(datetime.now(UTC).date()))
        yield
        connections.close_all()
    finally:
        server.stop()
