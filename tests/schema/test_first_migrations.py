"""Installations that had the migrations which the first ones replace: all of them, or some."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connections, transaction

from config.instance import BASE_DIR
from config.postgresql.schema import LAST_WITH_STEPS, SCHEMA, SchemaError
from tests.schema.catalog import schema_of
from tests.schema.databases import addresses, new_database
from tests.schema.notes import APPS
from tests.support.management_commands import manage

pytestmark = pytest.mark.slow

FIRST = ["0001_schema", "0002_shared_tables"]
LAST = {
    ("tenants", "0011_column_grants"),
    ("tools_registry", "0006_import_job"),
    ("audit", "0027_type_not_quoted"),
}
"""The last of the migrations that are replaced."""


@pytest.fixture(scope="module")
def template() -> Iterator[str]:
    """What `database` is a copy of."""
    with new_database() as alias:
        call_command("migrate", database=alias, verbosity=0)
        forget(alias, "name = ANY(%s)", FIRST)
        assert applied(alias) >= LAST
        yield alias


@pytest.fixture
def database(template: str) -> Iterator[str]:
    """A database as one that the replaced migrations made: the schema is the same."""
    with new_database(template) as alias:
        yield alias


def applied(alias: str) -> set[tuple[str, str]]:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        rows = cursor.fetchall()
    assert len(rows) == len(set(rows))
    return set(rows)


def forget(alias: str, which: str, values: list[str] | None = None) -> None:
    """Let the database not know of some migrations."""
    with connections[alias].cursor() as cursor:
        cursor.execute(f"DELETE FROM django_migrations WHERE {which}", values and [values])


def run(alias: str, var: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as another process on that database."""
    return manage(*arguments, TOOLTRAIL_VAR=str(var), **addresses(alias))


@pytest.mark.sampled("older installation", 1)
def test_installation_on_the_last_replaced_migrations_continues(
    database: str, tmp_path: Path
) -> None:
    """`migrate` notes that it has the first ones, and changes nothing."""
    before = schema_of(database)
    SCHEMA.check(database)
    completed = run(database, tmp_path, "migrate", "--database", "owner")
    assert completed.returncode == 0, completed.stderr
    assert "No migrations to apply" in completed.stdout
    assert {(app, "0001_schema") for app in APPS} < applied(database)
    assert schema_of(database) == before
    SCHEMA.check(database)
    completed = run(database, tmp_path, "migrate", "--database", "owner", "--check")
    assert completed.returncode == 0, completed.stdout


@pytest.mark.generated(1)
@pytest.mark.parametrize(
    ("which", "at"),
    [
        ("app = 'audit' AND name > '0019_hold'", "audit 0019"),
        ("app = 'audit' AND name = '0027_type_not_quoted'", "audit 0026"),
        ("app = 'tenants' AND name > '0004_settings'", "tenants 0004"),
        ("app = 'tools_registry' AND name <> '0001_tool'", "tools_registry 0001"),
    ],
)
def test_older_installation_is_rejected_in_one_line(
    database: str, tmp_path: Path, which: str, at: str
) -> None:
    forget(database, which)
    before, known = schema_of(database), applied(database)
    commands = [("migrate", "--database", "owner"), ("showmigrations",), ("tenant", "list")]
    for command in [*commands, ("up", "--port", "0")] if at == "audit 0019" else commands[:1]:
        completed = run(database, tmp_path, *command)
        assert completed.returncode != 0, command
        # "tooltrail: …", of `up` "CommandError: …".
        assert completed.stderr.partition(": ")[2] == (
            f"this database is at {at}, too old for this version: upgrade it with"
            f" Tooltrail at commit {LAST_WITH_STEPS} first, then start this version again\n"
        )
    assert (schema_of(database), applied(database)) == (before, known)


def test_schema_comparison_detects_each_kind_of_difference(database: str) -> None:
    """What the tests above compare by: each of these statements is one kind of difference."""
    before = schema_of(database)
    for statement, kind in {
        "ALTER TABLE batch ALTER answer DROP NOT NULL": "columns",
        "ALTER TABLE batch ALTER is_own DROP DEFAULT": "columns",
        "ALTER TABLE batch ALTER payload SET STORAGE EXTENDED": "columns",
        "DROP INDEX trace_started_idx": "indexes",
        "ALTER TABLE tool DROP CONSTRAINT tool_tenant_fk": "constraints",
        "ALTER TABLE tool NO FORCE ROW LEVEL SECURITY": "relations",
        "DROP POLICY nothing_left ON trace": "policies",
        "GRANT DELETE ON tool TO tooltrail_app": "grants on relations",
        "REVOKE UPDATE (raw) ON rejected_event FROM tooltrail_keeper": "grants on columns",
        "ALTER FUNCTION add_capped(bigint, bigint) STRICT": "functions",
        "REVOKE EXECUTE ON FUNCTION add_capped FROM PUBLIC": "grants on functions",
        "COMMENT ON TABLE tool IS 'different'": "comments",
        "DROP TRIGGER procrastinate_trigger_delete_jobs_v1 ON procrastinate_jobs": "triggers",
    }.items():
        with transaction.atomic(using=database), connections[database].cursor() as cursor:
            cursor.execute(statement)
            after = schema_of(database)
            transaction.set_rollback(True, using=database)
        assert before[kind] != after[kind], statement


def assert_migrate_restores(database: str, complete: dict[str, list[str]], tmp_path: Path) -> None:
    """Check that the schema differs from the complete one, and no more after `migrate`."""
    assert schema_of(database) != complete
    completed = run(database, tmp_path, "migrate", "--database", "owner")
    assert completed.returncode == 0, completed.stderr
    assert schema_of(database) == complete


@pytest.mark.sampled("older installation", 1)
def test_missing_last_grants_are_added(database: str, tmp_path: Path) -> None:
    """They are a migration of their own, which does all that the replaced one did."""
    complete = schema_of(database)
    forget(
        database,
        "name IN ('0011_column_grants', '0003_no_superusers', '0004_action_rows')",
    )
    with connections[database].cursor() as cursor:
        cursor.execute(
            "DELETE FROM tolerated_migration; ALTER TABLE action DROP COLUMN rows;"
            " GRANT INSERT, UPDATE, DELETE ON app_user, auth_group, auth_group_permissions,"
            " auth_permission, app_user_groups, app_user_user_permissions, django_admin_log,"
            " django_content_type, django_migrations, django_session, sign_in_failure"
            " TO tooltrail_app; GRANT UPDATE ON tenant TO tooltrail_app"
        )
    assert_migrate_restores(database, complete, tmp_path)


@pytest.mark.sampled("older installation", 1)
def test_superuser_flag_of_an_older_installation_is_cleared(database: str, tmp_path: Path) -> None:
    """Its first migration made accounts without the constraint; older code goes on meanwhile."""
    complete = schema_of(database)
    forget(database, "name IN ('0003_no_superusers', '0004_action_rows')")
    with connections[database].cursor() as cursor:
        cursor.execute(
            "ALTER TABLE app_user DROP CONSTRAINT app_user_superuser_check;"
            " ALTER TABLE action DROP COLUMN rows;"
            " DELETE FROM tolerated_migration;"
            " INSERT INTO app_user (username, password, is_superuser, first_name, last_name, email,"
            " is_staff, is_active, date_joined, default_range, theme, time_zone)"
            " VALUES ('root', '', true, '', '', '', true, true, now(), '', '', '')"
        )
    assert_migrate_restores(database, complete, tmp_path)
    with connections[database].cursor() as cursor:
        cursor.execute("SELECT username, is_superuser FROM app_user")
        assert cursor.fetchall() == [("root", False)]
        cursor.execute("SELECT app, name FROM tolerated_migration")
        assert cursor.fetchall() == [("tenants", "0003_no_superusers")]


def test_refusal_names_the_commit_to_upgrade_with(database: str) -> None:
    """And, in a clone with its history, it has the migrations that the first ones replace."""
    forget(database, "app = 'audit' AND name > '0019_hold'")
    with pytest.raises(SchemaError, match=f"at commit {LAST_WITH_STEPS} first"):
        SCHEMA.check(database)
    git = ["git", "-C", str(BASE_DIR)]
    if subprocess.run(  # a copy without history, or a shallow one
        [*git, "cat-file", "-e", LAST_WITH_STEPS], capture_output=True, check=False
    ).returncode:
        pytest.skip("no history here")
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", LAST_WITH_STEPS],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LC_ALL": "C"},
    ).stdout.splitlines()
    assert {f"{app}/migrations/{name}.py" for app, name in LAST} < set(listed)
