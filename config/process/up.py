"""`manage.py up`: from a fresh clone to a running installation.

It ensures everything that serving needs: one `up` per `var/`, a free port, a database with roles,
schema and partitions, static files, the first tenant. Every step does only what is missing, so
a second start is quick. Then this process becomes `config.process.supervise`, which runs the rest.
"""

import errno
import fcntl
import hashlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psycopg
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.commands.migrate import Command as Migrate
from django.db import DatabaseError, connections
from django.utils import timezone
from django.utils.text import slugify

from audit.index import partitions
from config import env, instance
from config.postgresql import database, processes, schema
from config.postgresql.aliases import OWNER
from config.postgresql.embedded import EmbeddedPostgresError
from config.process import supervise
from config.process.byte_code import compiled_meanwhile
from config.process.javascript import JavaScriptError, ensure_sdk
from config.readiness import why_not_ready
from tenants.keys import KeyRefused, authenticate, create_key
from tenants.models import Scope, Tenant
from tenants.provision import ensure_member, ensure_tenant

DEMO = "demo"
"""Slug of the demo's tenant and name of its user."""

_DEV_SCOPES = (Scope.INGEST, Scope.READ, Scope.PAYLOADS, Scope.REGISTRY)


class UpError(Exception):
    """The start failed. The message is one line for people."""


@dataclass(frozen=True)
class Options:
    """The options of `manage.py up`."""

    host: str
    port: int
    """0: any free port."""
    demo: bool
    dev_tenant: str | None
    as_json: bool
    without_worker: bool = False
    """Other machines run the worker."""
    javascript: bool = False
    """Run a demo executor in JavaScript, too."""


def run(options: Options) -> NoReturn:
    """Prepare everything and become the supervisor. Raises UpError."""
    report = _print if not options.as_json else lambda _line: None
    if options.javascript:
        try:
            ensure_sdk(report)
        except JavaScriptError as error:
            raise UpError(str(error)) from error
    held = lock()
    instance.DRAINING.unlink(missing_ok=True)  # a killed server may have left it
    port = _free_port(options.host, options.port)
    if instance.GRPC_PORT:
        _check_grpc(options.host)
    if settings.TELEMETRY and find_spec("opentelemetry.sdk") is None:
        raise UpError("TOOLTRAIL_TELEMETRY needs OpenTelemetry: install the extra `telemetry`")
    is_embedded = not env.text("DATABASE_URL", "")
    supervise.on_stop_signals(_stop)
    try:
        with compiled_meanwhile():
            tenant = _prepare(options, report)
        is_new = not Tenant.objects.exists()
    except BaseException as error:
        connections.close_all()
        if is_embedded:
            instance.POSTGRES.stop(within_s=3)
        if isinstance(error, schema.SchemaError):
            raise UpError(str(error)) from error
        if isinstance(error, DatabaseError | psycopg.Error):
            raise UpError(f"database: {str(error).splitlines()[0]}") from error
        if isinstance(error, EmbeddedPostgresError):
            raise UpError(str(error)) from error
        raise
    connections.close_all()
    # Until the supervisor handles them: otherwise the database could outlive a Ctrl-C now.
    signal.pthread_sigmask(signal.SIG_BLOCK, supervise.STOP_SIGNALS)
    os.write(held, f"{os.getpid()} {options.host}:{port}\n".encode())
    os.set_inheritable(held, True)
    os.chdir(instance.BASE_DIR)
    flags = {
        "--demo": options.demo,
        "--json": options.as_json,
        "--embedded": is_embedded,
        "--new": is_new,
        "--without-worker": options.without_worker,
        "--js": options.javascript,
    }
    sys.stderr.flush()
    os.execv(  # noqa: S606  # this command again
        sys.executable,
        [
            *(sys.executable, "-m", "config.process.supervise", "--lock", str(held)),
            *("--host", options.host, "--port", str(port)),
            *(("--tenant", tenant.slug) if tenant else ()),
            *(flag for flag, is_on in flags.items() if is_on),
        ],
    )


def _prepare(options: Options, report: Callable[[str], None]) -> Tenant | None:
    name = DEMO if options.demo else options.dev_tenant
    if not env.text("DATABASE_URL", ""):
        is_first = not instance.POSTGRES.data.exists()
        report(f"{'creating' if is_first else 'starting'} the database in {instance.POSTGRES.root}")
        instance.POSTGRES.start()
        database.initialise(instance.POSTGRES.admin_url, instance.load_secrets())
    alias = OWNER if OWNER in connections else "default"
    with schema.lock(alias, lambda: report("another process is preparing the database; waiting")):
        schema.SCHEMA.check(alias)
        _migrate(alias, report)
        if OWNER in connections:
            partitions.apply(partitions.missing(timezone.now().date()))
        if missing := why_not_ready():
            raise UpError(f"not ready to serve: {'; '.join(missing)}")
        tenant = _provision(name)
    _collect_static(report)
    report("starting the web server")
    return tenant


def _stop(number: int, _frame: FrameType | None) -> None:
    for other in supervise.STOP_SIGNALS:
        signal.signal(other, signal.SIG_IGN)  # the shutdown must not be interrupted
    sys.exit(128 + number)


def _print(line: str) -> None:
    sys.stderr.write(f"tooltrail: {line}\n")
    sys.stderr.flush()


def lock() -> int:
    """Lock `var/` for this process. Return the descriptor to hold. Raises UpError if locked."""
    # The kernel releases the lock when the supervisor ends, however it ends.
    try:
        instance.VAR.mkdir(mode=0o711, parents=True, exist_ok=True)
        descriptor = os.open(instance.UP_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UpError(f"cannot write to {instance.VAR}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid, _, address = instance.UP_LOCK.read_text().strip().partition(" ")
        where = f" at http://{address} (pid {pid})" if address else ""
        raise UpError(f"Tooltrail is already running in {instance.VAR}{where}") from None
    os.ftruncate(descriptor, 0)
    return descriptor


def _check_grpc(host: str) -> None:
    if find_spec("grpc") is None:
        raise UpError(
            "TOOLTRAIL_GRPC_PORT is set, but gRPC is not installed: install the extra `grpc`"
        )
    _free_port(host, instance.GRPC_PORT, "TOOLTRAIL_GRPC_PORT")


def _free_port(host: str, port: int, setting: str = "--port") -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise UpError(f"port {port} is in use; choose another with {setting}") from error
            raise UpError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        number: int = probe.getsockname()[1]
        return number


def _migrate(alias: str, report: Callable[[str], None]) -> None:
    todo = processes.pending(alias)
    for line in todo.waits:
        report(line)
    if not todo.count:
        return
    if alias == "default":
        raise UpError(
            "the database lacks migrations: set DATABASE_OWNER_URL,"
            f" or run {instance.COMMAND} migrate --database owner where it is set"
        )
    report(f"applying {todo.count} migrations")
    for target in todo.targets:  # our `migrate` takes the lock we hold
        call_command(Migrate(), database=OWNER, verbosity=0, **target)


def _provision(name: str | None) -> Tenant | None:
    """Ensure the tenant with an admin and a key. They are kept in var/secrets.json."""
    if name is None:
        return None
    slug = slugify(name)
    try:
        tenant = ensure_tenant(slug, name if slug != name else name.capitalize())
    except ValueError as error:
        raise UpError(f"--dev-tenant {name}: {error}") from error
    stored = dict(instance.load_secrets())
    password = stored.get(f"{slug}.password") or secrets.token_urlsafe(12)
    user = ensure_member(tenant, slug, password)
    api_key = stored.get(f"{slug}.api_key", "")
    try:
        is_known = authenticate(api_key, Scope.READ).tenant_id == tenant.id
    except KeyRefused:
        is_known = False
    if not is_known:
        api_key = create_key(tenant, "manage.py up", _DEV_SCOPES, created_by=user)[1]
    kept = {
        "user": user.username,
        "password": password,
        "api_key": api_key,
        "tenant_id": str(tenant.id),
    }
    instance.save_secrets(stored | {f"{slug}.{key}": value for key, value in kept.items()})
    if slug == DEMO:
        from config.process.demo_tenant import furnish  # only a demo imports rules

        furnish(tenant, user)
    return tenant


def _collect_static(report: Callable[[str], None]) -> None:
    digest = hashlib.sha256(repr(settings.STORAGES).encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            facts = Path(storage.path(name)).stat()
            digest.update(f"{name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    stamp = instance.VAR / "static.stamp"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    report("collecting static files")
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    stamp.write_text(digest.hexdigest())
