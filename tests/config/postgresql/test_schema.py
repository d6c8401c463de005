"""Code older than its database does not write, and migrations run one at a time."""

import json
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, build_opener

import psycopg
import pytest
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader

from config.postgresql import roles, schema
from tests.support.clusters import running_cluster
from tests.support.factories import make_call
from tests.support.installation import (
    Installation,
    announcement,
    clean_environment,
    end,
    new_installation,
    prepared_installation,
    until,
)
from tests.support.installation_requests import Senders, post_events, status_code
from tests.support.management_commands import init_database, manage, row_count

UNKNOWN = ("audit", "9999_of_a_newer_version")
APPLY = "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())"

_SPAN = {
    "traceId": "5b8efff798038103d269b633813fc60c",
    "spanId": "eee19b7ec3c1b174",
    "name": "execute_tool one",
    "kind": 1,
    "startTimeUnixNano": str(time.time_ns() - 1_000_000),
    "endTimeUnixNano": str(time.time_ns()),
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
        {"key": "gen_ai.tool.name", "value": {"stringValue": "one"}},
    ],
}
TOOL_SPAN = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [_SPAN]}]}]}).encode()


def test_whether_the_database_is_distributed_is_known_before_the_first_check(
    request: pytest.FixtureRequest,
) -> None:
    """A page may come first. On a cluster, a prepared statement of it would fail."""
    assert schema.Schema().is_distributed == request.config.getoption("cluster")


@pytest.fixture
def installation() -> Iterator[Installation]:
    """An installation whose database has the schema."""
    with prepared_installation() as created:
        yield created


def owner_url(installation: Installation) -> str:
    """The address of the embedded database, as its owner."""
    stored = json.loads((installation.var / "secrets.json").read_text())
    return installation.postgres.url(roles.OWNER, stored[roles.OWNER])


def taken_in(owner: psycopg.Connection[Any]) -> int:
    """The number of batches that arrived. The worker adds its own until it stops, seconds later."""
    row = owner.execute("SELECT count(*) FROM batch WHERE NOT is_own").fetchone()
    assert row is not None
    return int(row[0])


def sent(url: str, headers: dict[str, str], body: bytes = b"{}") -> tuple[int, str]:
    """Status and body of the response to a POST."""
    try:
        with build_opener().open(Request(url, data=body, headers=headers)) as answer:
            return int(answer.status), answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.slow
@pytest.mark.sampled("code of another schema", 1)
def test_process_stops_writing_after_an_unknown_migration(installation: Installation) -> None:
    process = installation.up("--json", "--dev-tenant", "acme")
    facts = announcement(process)
    with (
        Senders(facts, count=3) as senders,
        psycopg.connect(owner_url(installation)) as owner,
    ):
        until(lambda: senders.answers[200] > 20)
        until(lambda: row_count(owner, "procrastinate_workers"))
        owner.commit()
        owner.execute("LOCK TABLE batch")  # as a migration that alters it does
        stored = taken_in(owner)
        owner.execute(APPLY, UNKNOWN)
        # Wait until a request with an open transaction waits for the table.
        waiting = "SELECT FROM pg_locks WHERE relation = 'batch'::regclass AND NOT granted"
        until(lambda: owner.execute(waiting).fetchone() is not None)
        owner.commit()
        until(lambda: senders.answers[503] > 20)
        assert taken_in(owner) == stored
    assert senders.answers.keys() == {200, 503}
    with psycopg.connect(owner_url(installation)) as owner:
        assert taken_in(owner) == stored
        # Every acknowledged batch is stored.
        assert senders.answers[200] <= stored
        assert status_code(facts["url"] + "/readyz") == HTTPStatus.SERVICE_UNAVAILABLE
        until(lambda: "stopping the worker" in installation.errors.read_text())
        # Forms and the API write nothing, either. Pages are still shown.
        key = {"Authorization": f"Bearer {facts['api_key']}", "Content-Type": "application/json"}
        # The intake returns the same error.
        events, spans = "/api/v1/events", "/v1/traces"
        ndjson = key | {"Content-Type": "application/x-ndjson"}
        for path, headers, body in (
            ("/login", {}, b"{}"),
            ("/api/v1/registry/imports", key, b"{}"),
            (events, ndjson, b"{}"),
            (spans, key, TOOL_SPAN),
        ):
            code, answer = sent(facts["url"] + path, headers, body)
            assert code == HTTPStatus.SERVICE_UNAVAILABLE, path
            assert "This server is older than its database" in answer, path
        assert status_code(facts["url"] + "/login") == HTTPStatus.OK

        # A migration may declare that older code can continue.
        owner.execute("INSERT INTO tolerated_migration VALUES (%s, %s)", UNKNOWN)
        owner.commit()
        assert until(lambda: post_events(facts, make_call()) == HTTPStatus.OK)
        assert status_code(facts["url"] + "/readyz") == HTTPStatus.OK
        owner.execute("DELETE FROM tolerated_migration WHERE name = %s", UNKNOWN[1:])
        owner.commit()
        assert status_code(facts["url"] + "/readyz") == HTTPStatus.SERVICE_UNAVAILABLE
    assert end(process) == 0

    refusal = installation.refusal()
    assert "migrations that this version does not know: audit.9999_of_a_newer_version" in refusal


def test_replaced_migration_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a squash, an older database still names the replaced migrations."""
    written = MigrationLoader(None)
    squashed = Migration("0001_squashed", "audit")
    monkeypatch.setattr(squashed, "replaces", [UNKNOWN])
    written.disk_migrations["audit", squashed.name] = squashed
    monkeypatch.setattr(schema, "MigrationLoader", lambda _connection: written)
    monkeypatch.setattr(schema, "_applied", lambda _using: [(1, *UNKNOWN)])
    monkeypatch.setattr(schema, "_tolerated", lambda _using: set())
    schema.disk_migrations.cache_clear()
    try:
        schema.Schema().check()
        del written.disk_migrations["audit", squashed.name]
        schema.disk_migrations.cache_clear()
        with pytest.raises(schema.SchemaError, match="9999_of_a_newer"):
            schema.Schema().check()
    finally:
        schema.disk_migrations.cache_clear()


@pytest.mark.slow
@pytest.mark.sampled("code of another schema", 1)
def test_error_of_older_code_on_a_newer_schema_is_503(installation: Installation) -> None:
    process = installation.up("--json", "--dev-tenant", "acme")
    facts = announcement(process)
    assert post_events(facts, make_call()) == HTTPStatus.OK
    with psycopg.connect(owner_url(installation)) as owner:
        owner.execute("ALTER TABLE batch RENAME COLUMN payload TO content")
        owner.execute(APPLY, UNKNOWN)
    answers = {post_events(facts, make_call()) for _ in range(5)}
    assert answers == {HTTPStatus.SERVICE_UNAVAILABLE}
    assert end(process) == 0


@pytest.mark.slow
@pytest.mark.sampled("code of another schema", 1)
def test_migrations_run_while_senders_continue(installation: Installation) -> None:
    later = {"DJANGO_SETTINGS_MODULE": "tests.config.later.settings"}
    process = installation.up("--json", "--dev-tenant", "acme", **later)
    facts = announcement(process)
    environment = {"TOOLTRAIL_VAR": str(installation.var), **later}
    last = max(name for app, name in schema.disk_migrations() if app == "audit")
    with Senders(facts) as senders:
        until(lambda: senders.answers[200] > 20)
        # The newest migration of audit is reverted and applied again.
        for target in (("audit", last), ()):
            completed = manage("migrate", "--database", "owner", *target, **environment)
            assert completed.returncode == 0, completed.stderr
            assert "9000_later" in completed.stdout
        before = senders.answers[200]
        until(lambda: senders.answers[200] > before + 20)
    assert senders.answers.keys() <= {200, 503}
    with psycopg.connect(owner_url(installation)) as owner:
        assert row_count(owner, "invocation") == senders.answers[200]
    checked = manage("reindex", "--check", **environment)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert end(process) == 0


@pytest.mark.slow
@pytest.mark.sampled("code of another schema", 1)
def test_two_concurrent_starts_on_a_new_database_succeed() -> None:
    with (
        new_installation() as one,
        new_installation() as other,
        running_cluster(one.var.parent / "own", "shared_buffers = 4MB") as server,
    ):
        addresses = init_database(server.admin_url, one.var)
        both = [each.up("--json", "--dev-tenant", "acme", **addresses) for each in (one, other)]
        for process in both:
            assert status_code(announcement(process)["url"] + "/readyz") == HTTPStatus.OK
        with psycopg.connect(addresses["DATABASE_OWNER_URL"]) as owner:
            applied = owner.execute("SELECT app, name FROM django_migrations").fetchall()
            assert len(applied) == len(set(applied))
            assert row_count(owner, "tenant") == 1
        for process in both:
            assert end(process) == 0


@pytest.mark.slow
@pytest.mark.sampled("code of another schema", 1)
def test_command_of_older_code_is_rejected_in_one_line(installation: Installation) -> None:
    installation.postgres.start()
    try:
        with psycopg.connect(owner_url(installation)) as owner:
            owner.execute(APPLY, UNKNOWN)
        environment = clean_environment(TOOLTRAIL_VAR=str(installation.var))
        commands = ("procrastinate worker", "reindex", "tenant list", "migrate --database owner")
        for arguments in map(str.split, commands):
            completed = manage(*arguments, **environment)
            assert completed.returncode != 0
            assert "does not know: audit.9999" in completed.stderr
            assert completed.stderr.count("\n") == 1, completed.stderr
    finally:
        installation.postgres.stop()
