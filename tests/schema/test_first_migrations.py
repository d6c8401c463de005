"""Installations that had the migrations which the first ones replace: all of them, or some."""

import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connections, transaction

from audit.index import partitions
from config.postgresql.schema import DONE_STEP, LAST_WITH_REPLACED, SCHEMA
from tests.schema.catalog import schema_of
from tests.schema.databases import addresses, new_database
from tests.schema.notes import APPS
from tests.support.earlier_version import check_out_earlier_version, manage_earlier
from tests.support.management_commands import manage

pytestmark = pytest.mark.slow

LAST = {
    ("tenants", "0004_action_rows"),
    ("tools_registry", "0002_import_states"),
    ("audit", "0016_plain_policies"),
}
"""The last of the migrations that are replaced."""
AFTER_10 = (
    "app = 'audit' AND id > (SELECT id FROM django_migrations WHERE app = 'audit'"
    " AND name = '0010_withdrawn_approvals')"
)
DAY = date(2026, 11, 20)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database of the version that still has them, with the partitions of some days."""
    folder = tmp_path_factory.mktemp("earlier")
    files = check_out_earlier_version(folder)
    with new_database() as alias:
        manage_earlier(
            files,
            *("migrate", "--database", "owner"),
            TOOLTRAIL_VAR=str(folder),
            **addresses(alias),
        )
        assert applied(alias) >= LAST
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'p'")
            tables = {name for (name,) in cursor.fetchall()}
        wanted = partitions.wanted(DAY, back=1)
        partitions.apply([each for each in wanted if each.table in tables], alias)
        yield alias


@pytest.fixture
def database(earlier: str) -> Iterator[str]:
    """A copy of it."""
    with new_database(earlier) as alias:
        yield alias


@pytest.fixture(scope="module")
def fresh() -> Iterator[str]:
    """A database of today's files, with the same partitions."""
    with new_database() as alias:
        call_command("migrate", database=alias, verbosity=0)
        partitions.apply(partitions.wanted(DAY, back=1), alias)
        yield alias


def applied(alias: str) -> set[tuple[str, str]]:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        rows = cursor.fetchall()
    assert len(rows) == len(set(rows))
    return set(rows)


def run(alias: str, var: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as another process on that database."""
    return manage(*arguments, TOOLTRAIL_VAR=str(var), **addresses(alias))


@pytest.mark.sampled("older installation", 1)
def test_upgraded_and_new_databases_have_the_same_schema(
    database: str, fresh: str, tmp_path: Path
) -> None:
    """So the files show the tables of both, and each step does what was edited in the files."""
    SCHEMA.check(database)
    completed = run(database, tmp_path, "migrate", "--database", "owner")
    assert completed.returncode == 0, completed.stderr
    assert {(app, "0001_tables") for app in APPS} < applied(database)
    assert applied(fresh) <= applied(database)
    assert not any(app == DONE_STEP for app, _ in applied(fresh))
    upgraded, new = schema_of(database), schema_of(fresh)
    for kind, lines in new.items():
        assert upgraded[kind] == lines, kind
    SCHEMA.check(database)
    completed = run(database, tmp_path, "migrate", "--database", "owner", "--check")
    assert completed.returncode == 0, completed.stdout


@pytest.mark.generated(1)
@pytest.mark.parametrize(
    ("which", "at"),
    [
        (AFTER_10, "audit.0010_withdrawn_approvals"),
        ("app = 'audit' AND name = '0016_plain_policies'", "audit.0015_erased_users"),
        ("app = 'tenants' AND name = '0004_action_rows'", "tenants.0003_no_superusers"),
        ("app = 'tools_registry' AND name <> '0001_tool'", "tools_registry.0001_tool"),
    ],
)
def test_older_installation_is_rejected_in_one_line(
    database: str, tmp_path: Path, which: str, at: str
) -> None:
    with connections[database].cursor() as cursor:
        cursor.execute(f"DELETE FROM django_migrations WHERE {which}")
    before, known = schema_of(database), applied(database)
    commands = [("migrate", "--database", "owner"), ("showmigrations",), ("tenant", "list")]
    is_first = at == "audit.0010_withdrawn_approvals"
    for command in [*commands, ("up", "--port", "0")] if is_first else commands[:1]:
        completed = run(database, tmp_path, *command)
        assert completed.returncode != 0, command
        # "tooltrail: …", of `up` "CommandError: …".
        assert completed.stderr.partition(": ")[2] == (
            f"this database is at {at}, too old for this version: upgrade it with"
            f" Tooltrail at commit {LAST_WITH_REPLACED} first, then start this version again\n"
        )
    assert (schema_of(database), applied(database)) == (before, known)


def test_schema_comparison_detects_each_kind_of_difference(fresh: str) -> None:
    """What the first test compares by: each of these statements is one kind of difference."""
    before = schema_of(fresh)
    for statement, kind in {
        "ALTER TABLE batch ALTER answer DROP NOT NULL": "columns",
        "ALTER TABLE batch ALTER is_own DROP DEFAULT": "columns",
        "ALTER TABLE batch ALTER payload SET STORAGE EXTENDED": "columns",
        "DROP INDEX trace_started_idx": "indexes",
        "ALTER TABLE tool DROP CONSTRAINT tool_tenant_fk": "constraints",
        "ALTER TABLE tool NO FORCE ROW LEVEL SECURITY": "relations",
        "DROP TABLE decision_20261120": "inheritance",
        "DROP POLICY nothing_left ON trace": "policies",
        "GRANT DELETE ON tool TO tooltrail_app": "grants on relations",
        "REVOKE UPDATE (raw) ON rejected_event FROM tooltrail_keeper": "grants on columns",
        "ALTER FUNCTION add_capped(bigint, bigint) STRICT": "functions",
        "REVOKE EXECUTE ON FUNCTION add_capped FROM PUBLIC": "grants on functions",
        "COMMENT ON TABLE tool IS 'different'": "comments",
        "DROP TRIGGER procrastinate_trigger_delete_jobs_v1 ON procrastinate_jobs": "triggers",
    }.items():
        with transaction.atomic(using=fresh), connections[fresh].cursor() as cursor:
            cursor.execute(statement)
            after = schema_of(fresh)
            transaction.set_rollback(True, using=fresh)
        assert before[kind] != after[kind], statement
