"""This installation's own folder (`var/`) and the secrets that are kept in it.

`manage.py up` creates the secrets; everything else only reads them, so that any
management command finds the embedded database without being told.
"""

import json
import os
import re
import secrets
from functools import cache
from pathlib import Path

from config import env
from config.postgresql.database import APP, ROLES, VARIABLES
from config.postgresql.embedded import EmbeddedPostgres

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = Path(env.text("TOOLTRAIL_VAR", str(BASE_DIR / "var"))).resolve()
POSTGRES = EmbeddedPostgres(VAR / "postgres")
SECRETS = VAR / "secrets.json"
WEB_PROCESSES = env.integer("TOOLTRAIL_WEB_PROCESSES", min(2, os.cpu_count() or 1), minimum=1)
"""More take in more, at about 70 MiB each."""
DRAIN_S = env.integer("TOOLTRAIL_DRAIN_S", 0)
"""How long `/readyz` answers 503 before a server that gets SIGTERM stops listening."""
DRAINING = VAR / "draining"
"""Exists for so long: what tells the web processes."""


@cache
def load_secrets() -> dict[str, str]:
    """The installation's secrets by name; empty before the first `up`."""
    try:
        stored: dict[str, str] = json.loads(SECRETS.read_text())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise env.EnvironmentVariableError(
            f"cannot read {SECRETS} (TOOLTRAIL_VAR): {error.strerror}"
        ) from error
    return stored


def ensure_secrets() -> dict[str, str]:
    """Make what is missing (signing key, role passwords) and return all. Mode 0600."""
    stored = dict(load_secrets())
    missing = [name for name in ("secret_key", *ROLES) if name not in stored]
    if missing:
        # 64 characters: Django's deployment check wants at least 50.
        stored |= {name: secrets.token_urlsafe(48) for name in missing}
        save_secrets(stored)
    return stored


def save_secrets(values: dict[str, str]) -> None:
    """Replace the stored secrets as a whole, atomically.

    Raises EnvironmentVariableError where the folder cannot be written.
    """
    draft = SECRETS.with_suffix(".new")
    try:
        VAR.mkdir(mode=0o711, parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(values, file, indent=1)
        draft.replace(SECRETS)
    except OSError as error:
        raise env.EnvironmentVariableError(
            f"cannot write to {VAR} (TOOLTRAIL_VAR): {error.strerror}"
        ) from error
    load_secrets.cache_clear()


def name_of_host(hosts: list[str]) -> str:
    """What to call this installation: the first of its hosts that is a name, or localhost."""
    names = [host for host in hosts if re.fullmatch(r"[a-z0-9][a-z0-9.-]*", host)]
    return names[0] if names else "localhost"


def embedded_url(role: str) -> str | None:
    """The embedded database's address for a role; None before the first `up`."""
    password = load_secrets().get(role)
    return POSTGRES.url(role, password) if password else None


def child_environment(role: str | None) -> dict[str, str]:
    """Our environment for a process that is to be one role of the database, or with None none.

    It holds no other role's address, and the process need not read the file of secrets.
    """
    withheld = {name for name, its_role in VARIABLES.items() if its_role != role}
    if role is None:
        withheld.add("TOOLTRAIL_SECRET_KEY")
    withheld |= {f"{name}_FILE" for name in withheld}
    kept = {name: value for name, value in os.environ.items() if name not in withheld}
    if role == APP:
        secret_key = load_secrets().get("secret_key")
        made = {"DATABASE_URL": embedded_url(APP), "TOOLTRAIL_SECRET_KEY": secret_key}
        kept |= {name: value for name, value in made.items() if value and not env.text(name, "")}
    return kept
