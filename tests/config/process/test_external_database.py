"""An installation on an external PostgreSQL, with hosts and secrets from the environment."""

import os
import re
import secrets
import signal
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import psycopg
import pytest

from config.instance import BASE_DIR
from config.postgresql import database, roles
from config.postgresql.embedded import EmbeddedPostgres
from tests.support.clusters import running_cluster
from tests.support.installation import (
    Installation,
    announcement,
    end,
    new_installation,
)
from tests.support.installation_requests import status_code
from tests.support.management_commands import init_database, manage

DEPLOYED = {
    "TOOLTRAIL_HOSTS": "tools.example",
    "TOOLTRAIL_HTTPS": "true",
    "TOOLTRAIL_SECRET_KEY": secrets.token_urlsafe(48),
}
THROUGH_THE_PROXY = {"Host": "tools.example", "X-Forwarded-Proto": "https"}


@pytest.fixture
def installation() -> Iterator[Installation]:
    """An installation that was never started."""
    with new_installation() as created:
        yield created


@pytest.fixture
def own_postgres(installation: Installation) -> Iterator[EmbeddedPostgres]:
    """An external PostgreSQL without our roles."""
    with running_cluster(installation.var.parent / "own", "shared_buffers = 4MB") as server:
        yield server


@pytest.mark.sampled("external database", 1)
@pytest.mark.slow
def test_up_serves_from_an_initialised_external_database(
    installation: Installation, own_postgres: EmbeddedPostgres
) -> None:
    old = init_database(own_postgres.admin_url, installation.var)
    new = init_database(own_postgres.admin_url, installation.var, "--rotate")
    assert "password authentication failed" in installation.refusal(**old)
    application = {"DATABASE_URL": new["DATABASE_URL"]}
    assert "set DATABASE_OWNER_URL" in installation.refusal(**application)

    process = installation.up("--json", **DEPLOYED, **new)
    url = announcement(process)["url"]
    assert status_code(url + "/login", **THROUGH_THE_PROXY) == HTTPStatus.OK
    assert status_code(url + "/nothing", **THROUGH_THE_PROXY) == HTTPStatus.NOT_FOUND
    assert status_code(url + "/login", Host="tools.example") == HTTPStatus.MOVED_PERMANENTLY
    assert (
        status_code(url + "/login", **THROUGH_THE_PROXY | {"Host": "else"})
        == HTTPStatus.BAD_REQUEST
    )
    # A probe sends neither the host name nor the proxy's headers.
    assert status_code(url + "/readyz") == HTTPStatus.OK
    web = installation.processes("config.process.web_server")
    assert [each.environ().keys() & new.keys() for each in web] == [{"DATABASE_URL"}] * len(web)
    assert end(process) == 0
    assert not installation.postgres.root.exists()
    assert installation.processes() == []
    with psycopg.connect(new["DATABASE_OWNER_URL"]) as connection:
        connection.execute("SELECT FROM invocation")

    # Once the database is migrated, the web server's machine needs no owner's address.
    again = installation.up("--json", **DEPLOYED, **application)
    assert status_code(announcement(again)["url"] + "/login", **THROUGH_THE_PROXY) == HTTPStatus.OK
    assert end(again, signal.SIGTERM) == 0


@pytest.mark.slow
@pytest.mark.sampled("external database", 1)
def test_second_database_keeps_the_passwords_of_the_first(
    installation: Installation, own_postgres: EmbeddedPostgres
) -> None:
    first = init_database(own_postgres.admin_url, installation.var)
    second = ("database", "init", "--admin-url", own_postgres.admin_url, "--name", "second")
    completed = manage(*second, TOOLTRAIL_VAR=str(installation.var))
    assert completed.returncode == 1
    assert completed.stdout == ""
    assert "for the databases tooltrail" in completed.stderr
    assert "--rotate" in completed.stderr
    assert completed.stderr.count("\n") == 1

    kept = init_database(own_postgres.admin_url, installation.var, "--name", "second", **first)
    for variable, address in first.items():
        assert kept[variable] == address.replace("/tooltrail?", "/second?")
        for url in (address, kept[variable]):
            with psycopg.connect(url) as connection:
                connection.execute("SELECT 1")


@pytest.mark.slow
@pytest.mark.sampled("external database", 1)
def test_urls_of_another_server_are_rejected_and_nothing_is_created(
    installation: Installation, own_postgres: EmbeddedPostgres
) -> None:
    """For example, a shell that still has the variables of staging."""
    first = init_database(own_postgres.admin_url, installation.var)
    stale = {name: re.sub(":[^:@]+@", ":stale@", address) for name, address in first.items()}
    second = ("database", "init", "--admin-url", own_postgres.admin_url, "--name", "second")
    completed = manage(*second, TOOLTRAIL_VAR=str(installation.var), **stale)
    assert completed.returncode == 1
    assert completed.stdout == ""
    assert "DATABASE_URL cannot connect to this server as tooltrail_app" in completed.stderr
    assert completed.stderr.count("\n") == 1
    for url in first.values():
        psycopg.connect(url).close()
    with psycopg.connect(own_postgres.admin_url) as connection:
        row = connection.execute("SELECT FROM pg_database WHERE datname = 'second'").fetchone()
    assert row is None

    # If the server does not check passwords (`trust`), none is replaced, either.
    database.initialise(
        own_postgres.admin_url, dict.fromkeys(roles.ROLES, "stale"), keep_passwords=True
    )
    for url in first.values():
        psycopg.connect(url).close()


@pytest.mark.sampled("external database", 1)
@pytest.mark.slow
def test_init_problem_is_reported_in_one_line(tmp_path: Path) -> None:
    for admin_url, reason in (
        ("postgresql://nobody@127.0.0.1:1/none", "refused"),
        (os.environ["DATABASE_URL"], "permission denied"),
        ("no address", "missing"),
    ):
        arguments = ("database", "init", "--rotate", "--admin-url", admin_url)
        completed = manage(*arguments, TOOLTRAIL_VAR=str(tmp_path))
        assert completed.returncode != 0
        assert completed.stdout == ""
        assert reason in completed.stderr
        assert completed.stderr.count("\n") == 1


@pytest.mark.sampled("external database", 1)
@pytest.mark.slow
def test_deployment_check_passes_with_the_documented_variables(tmp_path: Path) -> None:
    check = ("check", "--deploy", "--fail-level", "WARNING")
    environment = {"DATABASE_URL": os.environ["DATABASE_URL"], "TOOLTRAIL_VAR": str(tmp_path)}
    completed = manage(*check, **environment, **DEPLOYED)
    assert completed.returncode == 0, completed.stderr
    assert "no issues" in completed.stdout

    for name, complaint in {
        "TOOLTRAIL_HTTPS": "security.W008",
        "TOOLTRAIL_SECRET_KEY": "security.W009",
    }.items():
        less = {other: value for other, value in DEPLOYED.items() if other != name}
        completed = manage(*check, **environment, **less)
        assert completed.returncode != 0
        assert complaint in completed.stderr
    assert "security.W018" in manage(*check, **environment, **DEPLOYED, TOOLTRAIL_DEBUG="1").stderr


def test_every_environment_variable_is_documented() -> None:
    read = {
        name
        for module in (BASE_DIR / "config").rglob("*.py")
        for name in re.findall(
            r"""env\.(?:text|boolean|choice|integer|openings|words)\(\s*"(\w+)\"""",
            module.read_text(),
        )
    }
    table = (BASE_DIR / "docs" / "running.md").read_text().partition("## In production")[2]
    documented = set(re.findall(r"^\| `([A-Z0-9_]+)` \|", table, re.MULTILINE))
    assert documented == read | roles.VARIABLES.keys()
