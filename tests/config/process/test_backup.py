"""A restored backup equals the original database: tables, log and pages."""

import json
import os
import secrets
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql

from config.instance import BASE_DIR
from config.postgresql import database, roles
from config.postgresql.embedded import EmbeddedPostgres
from config.process import backup
from config.process.backup import BackupError, find_program
from tests.isolation.world import make_world
from tests.support.clusters import running_cluster
from tests.support.factories import (
    Cast,
    make_call,
    make_cast,
    send_events,
)
from tests.support.installation import (
    Installation,
    announcement,
    clean_environment,
    end,
    new_installation,
    prepared_installation,
    until,
)
from tests.support.installation_requests import post_events, status_code
from tests.support.server import running_server

_SHAPE: LiteralString = """
SELECT tablename, policyname, roles::text, cmd, qual, with_check FROM pg_policies;
SELECT relname, relrowsecurity, relforcerowsecurity, relowner::regrole, coalesce(
    relacl, acldefault(CASE relkind WHEN 'S' THEN 's'::"char" ELSE 'r'::"char" END, relowner)
)::text[] FROM pg_class WHERE relnamespace = 'public'::regnamespace;
SELECT indexdef FROM pg_indexes WHERE schemaname = 'public';
SELECT conname, conrelid::regclass, contype, confrelid::regclass, confdeltype, convalidated
FROM pg_constraint WHERE connamespace = 'public'::regnamespace;
SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace;
SELECT attrelid::regclass, attname, attacl::text[] FROM pg_attribute
WHERE attacl IS NOT NULL AND attrelid >= 16384;
SELECT attname, attstorage FROM pg_attribute WHERE attrelid = 'batch'::regclass;
SELECT defaclrole::regrole, defaclobjtype, defaclacl::text[] FROM pg_default_acl
"""


def manage(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def session(**more: str) -> dict[str, str]:
    """The environment for the test session's database."""
    return dict(os.environ) | more


def content(url: str) -> dict[str, tuple[int, str]]:
    """The number of rows and a digest of them, for each table.

    Without server_process: a server that another test left running renews its row each few seconds.
    """
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname != 'server_process'"
            " AND relnamespace = 'public'::regnamespace ORDER BY 1"
        ).fetchall()
        rows = {}
        for (table,) in tables:
            row = connection.execute(
                sql.SQL(
                    "SELECT count(*), coalesce(md5(string_agg(md5(t::text), '' ORDER BY"
                    " md5(t::text))), '') FROM {} t"
                ).format(sql.Identifier(table))
            ).fetchone()
            assert row is not None
            rows[table] = row
        return rows


def acts_on_backups(url: str, cast: Cast) -> dict[str, int]:
    """How many actions about backups a tenant has, by verb."""
    with psycopg.connect(url) as connection:
        return dict(
            connection.execute(
                "SELECT verb, count(*) FROM action"
                " WHERE tenant_id = %s AND verb LIKE 'backup.%%' GROUP BY verb",
                [cast.tenant.id],
            ).fetchall()
        )


def schema(url: str) -> list[Any]:
    """Everything except rows: policies, grants, indexes, constraints and functions."""
    with psycopg.connect(url) as connection:
        return [sorted(map(_in_order, connection.execute(each))) for each in _SHAPE.split(";")]


def _in_order(row: tuple[Any, ...]) -> str:
    """A row as text, with its grants sorted: their order means nothing."""
    return str([sorted(each) if isinstance(each, list) else each for each in row])


@pytest.fixture
def installation() -> Iterator[Installation]:
    """An installation that was never started."""
    with new_installation() as created:
        yield created


@pytest.fixture
def prepared() -> Iterator[Installation]:
    """An installation whose database has the schema."""
    with prepared_installation() as created:
        yield created


@pytest.fixture
def target(installation: Installation) -> Iterator[tuple[EmbeddedPostgres, dict[str, str]]]:
    """An external PostgreSQL with an empty database and the roles, and the roles' addresses."""
    with running_cluster(installation.var.parent / "own") as server:
        passwords = {role: secrets.token_urlsafe(16) for role in roles.ROLES}
        database.initialise(server.admin_url, passwords)
        yield (
            server,
            {
                variable: database.role_url(server.admin_url, role, passwords[role])
                for variable, role in roles.VARIABLES.items()
            },
        )


@pytest.mark.slow
@pytest.mark.sampled("backup", 1)
def test_backups_move_between_external_and_embedded_databases(
    installation: Installation, target: tuple[EmbeddedPostgres, dict[str, str]], tmp_path: Path
) -> None:
    make_world("backup")
    cast: Cast = make_cast("backup")
    send_events(cast.tenant, [event for _ in range(20) for event in make_call()])
    first, second = tmp_path / "first", tmp_path / "second"
    completed = manage("backup", str(first), "--json", **session())
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout)["size"] == first.stat().st_size
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    source = os.environ["DATABASE_OWNER_URL"]
    expected, shape = content(source), schema(source)
    assert expected["batch"][0] > 1
    assert acts_on_backups(source, cast) == {"backup.create": 1}
    del expected["action"]  # each backup and each restore adds to it

    # Restore creates, starts and stops an embedded database.
    embedded = clean_environment(TOOLTRAIL_VAR=str(installation.var))
    completed = manage("restore", str(first), "--json", **embedded)
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout)["tables"] == len(expected) + 2
    assert installation.postgres.running_pid() is None
    again = manage("restore", str(first), **embedded)
    assert again.returncode == 1
    assert "the database is not empty" in again.stderr
    completed = manage("backup", str(second), **embedded)
    assert completed.returncode == 0, completed.stderr

    _, addresses = target
    completed = manage("restore", str(second), **clean_environment(**addresses))
    assert completed.returncode == 0, completed.stderr
    restored_content = content(addresses["DATABASE_OWNER_URL"])
    del restored_content["action"]
    assert restored_content == expected
    there = acts_on_backups(addresses["DATABASE_OWNER_URL"], cast)
    assert there == {"backup.create": 2, "backup.restore": 2}
    for restored, known in zip(schema(addresses["DATABASE_OWNER_URL"]), shape, strict=True):
        assert restored == known

    slug = ("--tenant", cast.tenant.slug)
    checked = manage("reindex", "--check", *slug, "--json", **session(**addresses))
    assert checked.returncode == 0, checked.stderr
    report = json.loads(checked.stdout)[cast.tenant.slug]
    assert (report["agrees"], report["calls"]) == (True, 20)
    with running_server(**addresses) as server:
        assert status_code(server.url + "/readyz") == 200
        assert status_code(server.url + "/login") == 200
        assert status_code(server.url + "/traces/") in (200, 302)


@pytest.mark.slow
@pytest.mark.sampled("backup", 1)
def test_backup_and_restore_problems_print_one_line_and_lose_nothing(
    target: tuple[EmbeddedPostgres, dict[str, str]], tmp_path: Path
) -> None:
    server, addresses = target
    environment = clean_environment(**addresses)
    file = tmp_path / "kept"
    file.write_text("not a dump")

    def refusal(*arguments: str, **more: str) -> str:
        completed = manage(*arguments, **environment | more)
        assert completed.returncode == 1
        assert "Traceback" not in completed.stderr
        assert completed.stderr.count("\n") == 1, completed.stderr
        return completed.stderr

    assert "already exists; use --force" in refusal("backup", str(file))
    assert "has no tables" in refusal("backup", str(file), "--force")
    assert file.read_text() == "not a dump"
    assert "is not a dump" in refusal("restore", str(file))
    assert "file not found" in refusal("restore", str(tmp_path / "nowhere"))
    assert "set DATABASE_OWNER_URL" in refusal("backup", str(tmp_path / "x"), DATABASE_OWNER_URL="")
    wrong = addresses["DATABASE_OWNER_URL"].replace("tooltrail_owner:", "tooltrail_owner:x")
    message = refusal("backup", str(tmp_path / "x"), DATABASE_OWNER_URL=wrong)
    assert "password authentication failed" in message
    assert not (tmp_path / "x").exists()
    assert not list(tmp_path.glob("*.partial"))
    dumped = manage("backup", str(tmp_path / "good"), **session())
    assert dumped.returncode == 0, dumped.stderr
    bare = server.url("postgres", (server.root / "superuser-password").read_text(), "template1")
    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute("DROP DATABASE tooltrail")
        for role in roles.ROLES:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
    admin = server.admin_url
    message = refusal("restore", str(tmp_path / "good"), DATABASE_OWNER_URL=admin)
    assert "database init" in message


def test_matching_dump_program_is_selected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def selected(on_path: int | None, in_wheel: int | None, server: int) -> str:
        paths = {}
        for name, major in (("path", on_path), ("wheel", in_wheel)):
            if major is not None:
                program = tmp_path / f"{name}-{major}"
                program.write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {major}.2'\n")
                program.chmod(0o755)
                paths[name] = str(program)
        monkeypatch.setattr("shutil.which", lambda name: paths.get("path"))
        monkeypatch.setattr(backup, "_of_wheel", lambda name: paths.get("wheel"))
        return Path(find_program("pg_dump", server)).name

    assert selected(16, 18, 16) == "path-16"
    assert selected(16, 18, 17) == "wheel-18"
    assert selected(None, 18, 15) == "wheel-18"
    assert selected(18, None, 18) == "path-18"
    with pytest.raises(BackupError, match=r"18 or newer must be .*path-16 is version 16"):
        selected(16, None, 18)
    with pytest.raises(BackupError, match="none found"):
        selected(None, None, 18)


@contextmanager
def older_postgres(folder: Path) -> Iterator[str]:
    """The superuser's address of an older PostgreSQL: TEST_DATABASE_URL, or Debian's 15."""
    script = BASE_DIR / ".ci" / "postgres15"
    if os.environ.get("TEST_DATABASE_URL"):
        yield os.environ["TEST_DATABASE_URL"]
        return
    address, over = folder / "address", folder / "over"
    waiting = f'echo "$TEST_DATABASE_URL" > {address}; until [ -e {over} ]; do sleep 0.1; done'
    with subprocess.Popen([str(script), "sh", "-c", waiting], env=clean_environment()) as server:
        try:
            until(lambda: server.poll() is None and address.exists() and address.read_text())
            yield address.read_text().strip()
        finally:
            over.touch()


@pytest.mark.slow
@pytest.mark.sampled("backup", 1)
def test_embedded_database_18_moves_to_an_older_server(
    prepared: Installation, tmp_path: Path
) -> None:
    process = prepared.up("--json", "--dev-tenant", "acme")
    facts = announcement(process)
    for _ in range(20):
        assert post_events(facts, make_call()) == 200
    embedded = clean_environment(TOOLTRAIL_VAR=str(prepared.var))

    def ledger(environment: dict[str, str]) -> Any:
        completed = manage("ledger", "status", "--json", **environment)
        return json.loads(completed.stdout)["acme"]

    # Wait until all is signed: a later checkpoint would not be in the backup.
    in_database = database.with_database(prepared.postgres.admin_url, roles.DATABASE)
    with psycopg.connect(in_database, autocommit=True) as connection:
        signed = (
            "SELECT has_baseline AND size = (SELECT max(size) FROM ledger_checkpoint)"
            " AND NOT EXISTS (SELECT FROM action WHERE ledger_index IS NULL) FROM ledger_head"
        )
        until(lambda: connection.execute(signed).fetchone() == (True,))
    before = ledger(embedded)
    entries = before["signed"]
    assert entries > 40  # the calls', and the server's own
    file = tmp_path / "dump"
    completed = manage("backup", str(file), **embedded)
    assert completed.returncode == 0, completed.stderr
    assert end(process) == 0
    with older_postgres(tmp_path) as admin_url:
        with psycopg.connect(admin_url) as connection:
            version = connection.info.server_version // 10_000
        assert 15 <= version <= 17
        passwords = {role: secrets.token_urlsafe(16) for role in roles.ROLES}
        database.initialise(admin_url, passwords, "moved")
        addresses = {
            variable: database.role_url(admin_url, role, passwords[role], "moved")
            for variable, role in roles.VARIABLES.items()
        }
        own = clean_environment(TOOLTRAIL_VAR=str(prepared.var), **addresses)
        completed = manage("restore", str(file), "--json", **own)
        assert completed.returncode == 0, completed.stderr
        assert json.loads(completed.stdout)["server"] == version
        checked = manage("reindex", "--check", "--json", **own)
        assert checked.returncode == 0, checked.stderr
        report = json.loads(checked.stdout)["acme"]
        assert (report["agrees"], report["calls"]) == (True, 20)
        there = ledger(own)
        assert there == before
        assert there["entries"] == entries
        assert there["refusal"] is None


@pytest.mark.slow
@pytest.mark.sampled("backup", 1)
def test_failed_restore_reports_the_postgresql_error(
    prepared: Installation,
    target: tuple[EmbeddedPostgres, dict[str, str]],
    tmp_path: Path,
) -> None:
    embedded = clean_environment(TOOLTRAIL_VAR=str(prepared.var))
    prepared.postgres.start()
    try:
        completed = manage("tenant", "create", "acme", "--admin", "acme", **embedded)
        assert completed.returncode == 0, completed.stderr
        superuser = database.with_database(prepared.postgres.admin_url, roles.DATABASE)
        with psycopg.connect(superuser) as connection:  # a row that a foreign key forbids
            connection.execute("SET session_replication_role = replica")
            connection.execute("DELETE FROM tenant")
        file = tmp_path / "dump"
        completed = manage("backup", str(file), **embedded)
        assert completed.returncode == 0, completed.stderr
    finally:
        prepared.postgres.stop()
    completed = manage("restore", str(file), **clean_environment(**target[1]))
    assert completed.returncode == 1
    assert "ERROR:" in completed.stderr
    assert "violates foreign key constraint" in completed.stderr
    assert "recreate it" in completed.stderr
