"""The squashed first migrations make the same schema as the migrations they replace."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from tests.schema.catalog import schema_of
from tests.schema.databases import new_database

APPS = ("tenants", "tools_registry", "audit")
FIRST = ["0001_schema", "0002_django_tables"]
LAST = [
    ("tenants", "0011_column_grants"),
    ("tools_registry", "0006_import_job"),
    ("audit", "0027_type_not_quoted"),
]
"""The last of the migrations that are replaced."""


@pytest.fixture(scope="module")
def at_once() -> Iterator[str]:
    with new_database() as alias:
        call_command("migrate", database=alias, verbosity=0)
        yield alias


@pytest.fixture(scope="module")
def step_by_step() -> Iterator[str]:
    """A database as one that was installed with the replaced migrations."""
    with new_database() as alias:
        executor = MigrationExecutor(connections[alias])
        executor.loader = MigrationLoader(connections[alias], replace_migrations=False)
        others = [each for each in executor.loader.graph.leaf_nodes() if each[0] not in APPS]
        executor.migrate([*LAST, *others])
        # Django notes at once that the first ones are replaced; the old version did not know them.
        with connections[alias].cursor() as cursor:
            cursor.execute("DELETE FROM django_migrations WHERE name = ANY(%s)", [FIRST])
        yield alias


def test_both_ways_end_in_the_same_schema(at_once: str, step_by_step: str) -> None:
    one, other = schema_of(at_once), schema_of(step_by_step)
    for name, lines in one.items():
        assert lines == other[name], name
    # The questions reach what they are about.
    for name in ("relations", "columns", "constraints", "indexes", "policies", "functions"):
        assert len(one[name]) > 2, name
    assert any("invocation" in line for line in one["policies"])


def test_a_difference_is_seen(at_once: str) -> None:
    """Each of these is one kind of difference; none goes unnoticed."""
    before = schema_of(at_once)
    for statement, kinds in {
        "ALTER TABLE batch ALTER answer DROP NOT NULL": {"columns"},
        "ALTER TABLE batch ALTER is_own DROP DEFAULT": {"columns"},
        "ALTER TABLE batch ALTER payload SET STORAGE EXTENDED": {"columns"},
        "DROP INDEX trace_started_idx": {"indexes", "relations"},
        "ALTER TABLE tool DROP CONSTRAINT tool_tenant_fk": {"constraints"},
        "ALTER TABLE tool NO FORCE ROW LEVEL SECURITY": {"relations"},
        "DROP POLICY nothing_left ON trace": {"policies"},
        "GRANT DELETE ON tool TO tooltrail_app": {"grants on relations"},
        "REVOKE UPDATE (raw) ON rejected_event FROM tooltrail_keeper": {"grants on columns"},
        "ALTER FUNCTION add_capped(bigint, bigint) STRICT": {"functions"},
        "REVOKE EXECUTE ON FUNCTION add_capped(bigint, bigint) FROM PUBLIC": {
            "grants on functions"
        },
        "COMMENT ON TABLE tool IS 'different'": {"comments"},
        "DROP TRIGGER procrastinate_trigger_delete_jobs_v1 ON procrastinate_jobs": {"triggers"},
    }.items():
        with connections[at_once].cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(statement)
            after = schema_of(at_once)
            cursor.execute("ROLLBACK")
        changed = {name for name in before if before[name] != after[name]}
        assert kinds <= changed, statement


def test_an_installation_on_the_last_old_ones_goes_on(step_by_step: str) -> None:
    """`migrate` notes that it has the first ones, and changes nothing."""
    before = schema_of(step_by_step)
    with connections[step_by_step].cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        applied = cursor.fetchall()
    assert set(LAST) <= set(applied)
    assert not {name for _, name in applied} & set(FIRST)
    call_command("migrate", database=step_by_step, verbosity=0)
    with connections[step_by_step].cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        applied = cursor.fetchall()
    assert len(applied) == len(set(applied))
    assert {(app, "0001_schema") for app in APPS} < set(applied)
    assert schema_of(step_by_step) == before
