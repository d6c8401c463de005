"""This installation's folder (`var/`) and the secrets in it.

`manage.py up` creates the secrets. Everything else only reads them, so that any management command
finds the embedded database without configuration.
"""

import json
import os
import re
import secrets
from functools import cache
from pathlib import Path

from config import env
from config.postgresql.embedded import EmbeddedPostgres
from config.postgresql.roles import APP, ROLES, VARIABLES

BASE_DIR = Path(__file__).resolve().parent.parent
IS_CHECKOUT = (BASE_DIR / "pyproject.toml").exists()
"""Otherwise this is the installed wheel, and BASE_DIR its folder in site-packages."""
COMMAND = "manage.py" if IS_CHECKOUT else "tooltrail-server"


def _default_var() -> Path:
    if IS_CHECKOUT:
        return BASE_DIR / "var"
    # As the XDG base directory specification says. A user without a home must set TOOLTRAIL_VAR.
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")  # noqa: PTH111  Path.expanduser raises without a home
    return Path(data) / "tooltrail"


VAR = Path(env.text("TOOLTRAIL_VAR", str(_default_var()))).resolve()
POSTGRES = EmbeddedPostgres(VAR / "postgres")
SECRETS = VAR / "secrets.json"
WEB_PROCESSES = env.integer("TOOLTRAIL_WEB_PROCESSES", min(2, os.cpu_count() or 1), minimum=1)
"""More processes accept more events. Each takes about 70 MiB."""
UP_LOCK = VAR / "up.lock"
"""Locked while `up` runs. Contains its pid and the address at which it serves."""
GRPC_PORT = env.integer("TOOLTRAIL_GRPC_PORT", 0)
"""Where OTLP is received over gRPC; 0: nowhere. It takes a process of its own, of about 90 MiB."""
LOG_FORMAT = env.choice("TOOLTRAIL_LOG_FORMAT", "text", "json")
QUEUES = frozenset({"default", "deliveries", "ledger", "reports", "streams"})
"""The queues of all tasks. In `ledger` is what signs, in `reports` what makes a report, in
`deliveries` what sends alerts, in `streams` what sends records to SIEMs."""


def _workers() -> list[list[str]]:
    """Return the queues of each worker that `up` runs, from `TOOLTRAIL_WORKERS`.

    White space separates workers, commas their queues. Raises EnvironmentVariableError.
    """
    text = env.text("TOOLTRAIL_WORKERS", ",".join(sorted(QUEUES)))
    workers = [worker.split(",") for worker in text.split()]
    for unknown in sorted({queue for worker in workers for queue in worker} - QUEUES):
        raise env.EnvironmentVariableError(
            f"TOOLTRAIL_WORKERS: there is no queue {unknown!r}, only {', '.join(sorted(QUEUES))}"
        )
    return workers


WORKERS = _workers()
DRAIN_S = env.integer("TOOLTRAIL_DRAIN_S", 0)
"""Seconds in which `/readyz` answers 503 after SIGTERM, before the server stops listening."""
DRAINING = VAR / "draining"
"""While this file exists, during `DRAIN_S`, the web processes answer 503."""


@cache
def load_secrets() -> dict[str, str]:
    """Return the installation's secrets by name; empty before the first `up`."""
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
    """Create missing secrets (signing key, role passwords) and return all. File mode 0600."""
    stored = dict(load_secrets())
    missing = [name for name in ("secret_key", *ROLES) if name not in stored]
    if missing:
        # 64 characters: Django's deployment check requires at least 50.
        stored |= {name: secrets.token_urlsafe(48) for name in missing}
        save_secrets(stored)
    return stored


def save_secrets(values: dict[str, str]) -> None:
    """Replace all stored secrets, atomically.

    Raises EnvironmentVariableError if the folder is not writable.
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
    """Return this installation's name: its first host that is a name, else localhost."""
    names = [host for host in hosts if re.fullmatch(r"[a-z0-9][a-z0-9.-]*", host)]
    return names[0] if names else "localhost"


def served_port() -> str | None:
    """Return the port at which `up` serves, or served last; None before the first."""
    try:
        return UP_LOCK.read_text().strip().rpartition(":")[2] or None
    except OSError:
        return None


def embedded_url(role: str) -> str | None:
    """Return the embedded database's URL for a role; None before the first `up`."""
    password = load_secrets().get(role)
    return POSTGRES.url(role, password) if password else None


def child_environment(role: str | None) -> dict[str, str]:
    """Return the environment for a process that uses one database role, or none (None).

    It has no other role's URL. The process does not need to read the file of secrets.
    """
    withheld = {name for name, its_role in VARIABLES.items() if its_role != role}
    if role is None:
        withheld.add("TOOLTRAIL_SECRET_KEY")
    withheld |= {f"{name}_FILE" for name in withheld}
    kept = {name: value for name, value in os.environ.items() if name not in withheld}
    if role == APP:
        secret_key = load_secrets().get("secret_key")
        generated = {"DATABASE_URL": embedded_url(APP), "TOOLTRAIL_SECRET_KEY": secret_key}
        kept |= {
            name: value for name, value in generated.items() if value and not env.text(name, "")
        }
    return kept
