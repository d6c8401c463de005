"""The test session: one real PostgreSQL, the real roles, the migrations, and a cast.

The embedded server is started in a temporary folder unless TEST_DATABASE_URL names a
superuser's address of another PostgreSQL (a scratch database is made there). Code under
test connects as `tooltrail_app`, bound by row-level security. Nothing is rolled back or
truncated between tests: every test has tenants of its own, which is what tenants are for.
"""

import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import conninfo

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.support.factories import Cast
    from tests.support.server import LiveServer

_workspace = Path(tempfile.mkdtemp(prefix="tooltrail-test-"))
_workspace.chmod(0o711)  # as root, PostgreSQL may run as another user
os.environ["TOOLTRAIL_VAR"] = str(_workspace / "var")
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
os.environ["TOOLTRAIL_LOG_LEVEL"] = "WARNING"
# Otherwise gRPC starts a thread in forked children, which then cannot enter the namespace that
# PostgreSQL needs: 2 of 8 runs.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
# Playwright's sync API keeps an event loop in this thread, which Django takes for async code.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
for _name in ("DATABASE_URL", "DATABASE_OWNER_URL", "TOOLTRAIL_URL", "TOOLTRAIL_API_KEY"):
    os.environ.pop(_name, None)
# Hundreds of processes are started. Without cached bytecode each compiles all modules again, which
# takes 4 s of processor time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A script's background command ignores Ctrl-C, and so would everything that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from config.postgresql import database, roles  # noqa: E402  # reads the environment set above
from config.postgresql.embedded import EmbeddedPostgres  # noqa: E402  # likewise
from tests.support import browser as browsers  # noqa: E402  # likewise

_embedded: EmbeddedPostgres | None = None

# Whether examples are made quickly says how busy the machine is.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full", action="store_true", help="the long form of tests/faults: half an hour"
    )
    parser.addoption(
        "--cluster",
        action="store_true",
        help="distribute the test database: TEST_DATABASE_URL and TEST_WORKER_URLS name a cluster",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start PostgreSQL, make roles and schema, and set Django up, before any test is imported.

    With `pytest -n 2` each process has its own; the one that hands out the tests has none. It
    fetches what both would fetch, and has a folder for what they share.
    """
    if config.getoption("numprocesses"):
        browsers.ensure_playwright()
        browsers.find_chromium()
        os.environ["TEST_SESSION_FOLDER"] = str(_workspace)
        return
    global _embedded
    passwords = {role: secrets.token_urlsafe(16) for role in roles.ROLES}
    name = f"tooltrail_test_{secrets.token_hex(4)}"
    admin_url = os.environ.get("TEST_DATABASE_URL")
    if admin_url is None:
        # Durability is not what most tests are about; those that are start their own server.
        _embedded = EmbeddedPostgres(
            _workspace / "postgres", settings=("fsync = off", "full_page_writes = off", "jit = off")
        )
        _embedded.start()
        admin_url = _embedded.admin_url
    database.initialise(admin_url, passwords, name)
    for variable, role in (
        ("DATABASE_URL", roles.APP),
        ("DATABASE_OWNER_URL", roles.OWNER),
        ("DATABASE_KEEPER_URL", roles.KEEPER),
    ):
        os.environ[variable] = database.role_url(admin_url, role, passwords[role], name)
    # A role without limits: for tests that alter protected rows or need their own database.
    os.environ["TEST_ADMIN_URL"] = admin_url
    os.environ["TEST_SUPERUSER_URL"] = conninfo.make_conninfo(admin_url, dbname=name)

    import django
    from django.conf import settings
    from django.core.management import call_command
    from django.test.utils import setup_test_environment

    django.setup()
    # A fast hasher and no manifest: neither is what a test of ours is about.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.STORAGES = {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }
    gzip = settings.MIDDLEWARE.index("django.middleware.gzip.GZipMiddleware")
    settings.MIDDLEWARE.insert(gzip + 1, "tests.support.markup.CompactMiddleware")
    # Every test client makes a WhiteNoise, which reads all files of this folder: empty here.
    settings.STATIC_ROOT = _workspace / "no-static-files"
    settings.STATIC_ROOT.mkdir()
    setup_test_environment()
    call_command("migrate", database="owner", verbosity=0)

    from django.utils import timezone

    from audit.index import partitions

    partitions.apply(partitions.missing(timezone.now().date()))
    if config.getoption("cluster"):
        _distribute(admin_url, name)

    from config.postgresql.schema import SCHEMA

    SCHEMA.check()  # as each server does when it starts


def _distribute(admin_url: str, name: str) -> None:
    """Distribute the database over the cluster. Two shards of a table suffice: one a node."""
    from django.db import connections

    from config.postgresql import cluster_nodes, distribution

    connections.close_all()
    cluster_nodes.join_nodes(admin_url, os.environ["TEST_WORKER_URLS"].split(), name, {})
    with psycopg.connect(os.environ["TEST_SUPERUSER_URL"], autocommit=True) as superuser:
        todo = distribution.plan(superuser)
        distribution.apply(superuser, todo, shards=2, report=lambda _: None)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not config.getoption("numprocesses"):
        from django.db import connections

        connections.close_all()
        if _embedded is not None:
            _embedded.stop()
        else:
            _drop_scratch_database()
    shutil.rmtree(_workspace, ignore_errors=True)


def _drop_scratch_database() -> None:
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict

    name = str(conninfo_to_dict(os.environ["DATABASE_URL"])["dbname"])
    with psycopg.connect(os.environ["TEST_DATABASE_URL"], autocommit=True) as connection:
        connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )


def pytest_pycollect_makemodule(module_path: Path) -> None:
    """Fetch Playwright before the first module that imports it."""
    if browsers.uses_playwright(module_path):
        browsers.ensure_playwright()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their place: gzip's hold the second they were made in, and the processes
    of `pytest -n 2` must agree about every test's name.
    """
    return argname if isinstance(val, bytes) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """A browser takes seconds to start and pages take a second each."""
    if _uses_browser(item):
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)  # after pytest-randomly has shuffled
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a cluster cannot do, and put browser tests last.

    Playwright's loop, once running, makes asyncio.run() refuse to start. They are last by file, as
    `--dist loadfile` hands them out.
    """
    if config.getoption("cluster"):
        alone = [item for item in items if item.get_closest_marker("one_node")]
        config.hook.pytest_deselected(items=alone)
        items[:] = [item for item in items if item not in alone]
    late = {item.path for item in items if _uses_browser(item)}
    items.sort(key=lambda item: item.path in late)


def _uses_browser(item: pytest.Item) -> bool:
    return "browser" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def live_server() -> "Iterator[LiveServer]":
    """The real web server on the test database: a process of its own, so nothing is patched."""
    from tests.support.server import running_server

    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """One Chromium for the session; a test takes `page`, or a context of its own from here."""
    browsers.ensure_playwright()
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)  # milliseconds: two browsers on two cores stall for seconds
    path = browsers.find_chromium()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=browsers.FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: "Browser", live_server: "LiveServer") -> "Iterator[Page]":
    """An empty tab; `page.goto("/login")` goes to the live server."""
    context = browser.new_context(base_url=live_server.url)
    yield context.new_page()
    context.close()


@pytest.fixture(autouse=True)
def nothing_expected_by_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether calls that start are taken for new depends on what this process met before."""
    from audit.intake import ingest

    monkeypatch.setattr(ingest, "_EXPECTATION", ingest._Expectation())


@pytest.fixture(autouse=True)
def any_number_of_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests do not read a download to its end, so it is never closed."""
    from config.http import streams

    streams.RUNNING.clear()
    monkeypatch.setattr(streams, "STREAMS", 1_000)
    monkeypatch.setattr(streams, "STREAMS_OF_TENANT", 1_000)


@pytest.fixture(autouse=True)
def no_tenants_in_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database of a test process has thousands of tenants: to sum them up takes a minute."""
    monkeypatch.setattr("audit.queries.all_tenants._tenant_ids", list)


@pytest.fixture
def clear_principals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tenants have chosen clear text: the test names persons as executors send them."""
    from audit.intake import principals

    monkeypatch.setattr(principals, "stores_clear_principals", lambda tenant_id: True)


@pytest.fixture
def acme() -> "Cast":
    """A tenant with an admin, an editor, an auditor and a viewer."""
    from tests.support.factories import make_cast

    return make_cast("acme")


@pytest.fixture
def globex() -> "Cast":
    """Another tenant. Its members must see nothing of acme's."""
    from tests.support.factories import make_cast

    return make_cast("globex")
