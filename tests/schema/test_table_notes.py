"""What the note above each table says is what the code and the database do.

A row in every table of a tenant (`tests/isolation/world.py`) is kept, erased and deleted for real,
and all tables are compared before and after.
"""

import io
import json
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections
from django.utils import timezone
from tooltrail.ledger import Kind

from audit.alerts import trying
from audit.deliveries import delivering
from audit.index.partitions import PARTITIONED_TABLES
from audit.ledger.actions import enter_all_actions
from audit.ledger.entries import append_entry
from audit.queries import skipped_spans
from audit.queries.call_query import Reader, parse
from audit.reports.schedule import KEEP_DAYS
from audit.retention import erasure, retention
from audit.retention.holds import holds_in_force, lock_record
from audit.work import argument_comparison, payload_search
from audit.work.drift import job as drift
from audit.work.replay import job as replay
from tenants import invitations, sign_in
from tenants.models import TenantSetting
from tenants.scope import tenant_scope
from tests.isolation.world import World, make_world
from tests.schema.notes import FACTS, notes, notes_in
from tests.support.ledger_log import as_owner
from tools_registry.exchange import job as imports

ADDS = ("added", "recorded", "written")
"""How a note says that something is written about it."""

# Days from now, as the notes count them: long after all that the world is made of.
LATER = timedelta(days=500)


def ours() -> list[str]:
    """Tables that our migrations make, without partitions."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            " AND relkind IN ('r', 'p') AND NOT relispartition"
            r" AND relname !~ '^(auth|django|procrastinate)_' ORDER BY relname"
        )
        return [name for (name,) in cursor.fetchall()]


def with_tenant_id() -> set[str]:
    return {table for table in ours() if "tenant_id" in columns(table)}


def columns(table: str) -> set[str]:
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT attisdropped",
            [table],
        )
        return {name for (name,) in cursor.fetchall()}


@dataclass
class Change:
    """What happened to the rows of one table."""

    deleted: bool = False
    inserted: bool = False
    columns: set[str] = field(default_factory=set)
    """Of rows that are still there."""


type Rows = dict[str, dict[str, dict[str, Any]]]
"""By table and primary key."""


def rows(world: World) -> Rows:
    """All rows of the world's tenant, and of tables that are nobody's."""
    by_table: Rows = {}
    tenants = with_tenant_id()
    with connections["owner"].cursor() as cursor:
        for table in ours():
            cursor.execute(
                "SELECT array_agg(attname) FROM pg_index JOIN pg_attribute"
                " ON attrelid = indrelid AND attnum = ANY(indkey)"
                " WHERE indrelid = %s::regclass AND indisprimary",
                [table],
            )
            (key,) = cursor.fetchone()
            where = f"WHERE tenant_id = '{world.tenant.id}'" if table in tenants else ""
            cursor.execute(f'SELECT to_jsonb(t)::text FROM "{table}" t {where}')
            documents = [json.loads(text) for (text,) in cursor.fetchall()]
            for document in documents:
                # A server that tests share says in its row every 5 s that it runs.
                document.pop("heard_at", None)
            by_table[table] = {str([each[name] for name in key]): each for each in documents}
    return by_table


def changes(before: Rows, after: Rows) -> dict[str, Change]:
    """By table, of those of which something changed."""
    by_table = {}
    for table, earlier in before.items():
        later = after[table]
        altered = {
            name
            for key, row in earlier.items()
            for name in row
            if key in later and row[name] != later[key][name]
        }
        change = Change(bool(earlier.keys() - later), bool(later.keys() - earlier), altered)
        if change != Change():
            by_table[table] = change
    return by_table


def differing(fact: str, changed: dict[str, Change], calm: tuple[str, ...]) -> list[str]:
    """Tables whose note says something else about a fact than what happened.

    `calm` is how a note begins of which nothing is deleted or altered.
    """
    wrong = []
    for table, note in notes().items():
        text, change = note.facts[fact], changed.get(table, Change())
        is_right = (
            change.deleted == (" deleted" in text.split(".")[0])
            and all(name in text for name in change.columns)
            and change.inserted == any(word in text for word in ADDS)
            and (change != Change() or text.startswith(calm))
        )
        if not is_right:
            wrong.append(f"{table}: {text!r}, but {change}")
    return wrong


def test_every_table_has_a_complete_block() -> None:
    by_table = notes()
    assert set(ours()) == set(by_table), "say in its migration what the table is for"
    for table, note in by_table.items():
        assert note.purpose, f"{note.file}: the block of {table} does not begin with its name"
        assert list(note.facts) == list(FACTS), table


def test_missing_block_is_detected(tmp_path: Path) -> None:
    file = tmp_path / "0009_later.sql"
    file.write_text("-- another: not this one\nCREATE TABLE later (\n);\nCREATE TABLE bare (\n);\n")
    by_table = notes_in(file)
    assert [by_table["later"].purpose, by_table["bare"].purpose] == ["", ""]
    assert by_table["later"].facts == by_table["bare"].facts == {}


def test_citus_fact_matches_the_table() -> None:
    """A cluster distributes what has a tenant_id, and copies to all nodes what that refers to."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT conrelid::regclass::text, confrelid::regclass::text"
            " FROM pg_constraint WHERE contype = 'f'"
        )
        references = cursor.fetchall()
    tenants = with_tenant_id()
    copied = {there for here, there in references if here in tenants and there not in tenants}
    # What a copied table refers to is copied, too.
    assert not {there for here, there in references if here in copied} - copied
    expected = {
        table: "distributed by tenant_id."
        if table in tenants
        else "reference table."
        if table in copied
        else "local to the coordinator."
        for table in ours()
    }
    assert {table: note.facts["Citus"] for table, note in notes().items()} == expected


@pytest.mark.slow
def test_tenant_deletion_fact_matches_the_behaviour() -> None:
    world = make_world("notes")
    as_owner("UPDATE app_user SET last_tenant_id = %s", [world.tenant.id])
    as_owner(
        "UPDATE tenant SET suspended_at = now() - interval '1 h' WHERE id = %s", [world.tenant.id]
    )
    before = rows(world)
    assert all(before[table] for table in with_tenant_id())
    call_command(
        "tenant",
        *("delete", world.tenant.slug, "--yes", world.tenant.name),
        stdout=io.StringIO(),
        stderr=io.StringIO(),
    )
    after = rows(world)
    assert not any(after[table] for table in with_tenant_id())
    assert differing("Tenant deletion", changes(before, after), ("rows are kept",)) == []


def world_that_may_be_erased() -> World:
    """A world whose hold has its entry in the ledger: nothing is erased otherwise."""
    world = make_world("notes")
    with tenant_scope(world.tenant.id):
        lock_record(world.tenant.id)
        for hold in holds_in_force(world.tenant.id):
            entry = {"state": "set", "hold": str(hold.id), "covers": hold.covers}
            append_entry(world.tenant.id, Kind.HOLD, entry, timezone.now())
    return world


@pytest.mark.slow
def test_erasure_fact_matches_the_behaviour() -> None:
    world = world_that_may_be_erased()
    as_owner(
        "UPDATE rejected_event SET raw = convert_to(%s, 'UTF8') WHERE tenant_id = %s",
        [json.dumps({"invocation_id": str(world.call_id)}), world.tenant.id],
    )
    now = timezone.now()
    enter_all_actions(world.tenant.id)
    before = rows(world)
    with tenant_scope(world.tenant.id):
        query = parse(f"trace:{world.canary}", Reader(sees_payloads=True))
        one = erasure.start_erasure(world.tenant, world.admin, query, now)
    while erasure.run_slice(world.tenant.id, one.id):
        pass
    with tenant_scope(world.tenant.id):
        assert erasure.confirm_erasure(world.tenant, world.admin, one.id, "asked to", now)
    while erasure.run_slice(world.tenant.id, one.id):
        pass
    assert differing("Erasure", changes(before, rows(world)), ("no effect",)) == []


@pytest.mark.slow
def test_retention_fact_matches_the_behaviour() -> None:
    world = world_that_may_be_erased()
    with tenant_scope(world.tenant.id):
        TenantSetting.objects.filter(tenant=world.tenant).update(
            payload_days=1, index_days=retention.INDEX_DAYS_MIN, erased_to=0, index_from=None
        )
    before = rows(world)
    while retention.run_slice(world.tenant.id, timezone.now() + LATER):
        pass
    changed = changes(before, rows(world))
    assert {table for table, change in changed.items() if change.deleted} == {
        *PARTITIONED_TABLES,
        "call_units",
        "llm_usage",
        "tool_regression_case",
    }
    # What goes for other reasons is the next test's.
    others = {table for table, when in other_times().items() if when}
    assert others.isdisjoint(changed)
    wrong = differing("Retention", changed, ("kept",))
    assert [each for each in wrong if each.partition(":")[0] not in others] == []


def other_times() -> dict[str, str]:
    """Beginnings of the notes of what goes at a time of its own, whatever a tenant's settings say;
    '' for what the application may delete, and does not.
    """
    return {
        "alert_trial": f"rows are deleted {trying.KEPT_FOR.days} day after",
        "argument_comparison": f"rows are deleted {argument_comparison.KEPT_FOR.days} day after",
        "mcp_use": "rows are deleted when the worker has recorded them",
        "payload_search": f"rows are deleted {payload_search.KEPT_FOR.days} day after",
        "payload_search_hit": "rows are deleted with their payload_search",
        "report": f"rows are deleted keep_days after they were made, {KEEP_DAYS} without",
        "tool_replay": f"the newest {replay.KEPT} of each tool are kept",
        "tool_drift": f"the newest {drift.KEPT} of each tool are kept",
        "tool_import": f"rows are deleted {imports.KEPT_FOR.days} day after",
        "tool_import_tool": "rows are deleted with their tool_import",
        "alert_delivery": f"rows are deleted {delivering.KEPT_FOR.days} days after",
        "incident": "rows are deleted when",
        "skipped_span": f"rows are deleted {skipped_spans.KEPT_FOR.days} days after",
        "invitation": f"rows are deleted {invitations.KEPT_FOR.days} days after",
        "sign_in_failure": "rows are deleted after"
        f" {sign_in.FAILURES_COUNT_FOR // timedelta(minutes=1)} minutes",
        "server_process": "rows are deleted a day after",
        "cache_entry": "rows are deleted after they expired",
        "usersessions_usersession": "rows are deleted when their owner",
        "mfa_authenticator": "kept until",
        "socialaccount_socialaccount": "kept until",
        "socialaccount_socialtoken": "kept until",
        # People delete these.
        "membership": "kept until",
        "directory_user": "kept until",
        "directory_group": "kept until",
        "tool_draft": "kept until",
        "saved_view": "kept until",
        "page_choice": "kept until",
        "board": "kept until",
        "alert_rule": "kept until",
        "maintenance_window": "kept until",
        "note": "kept until",
        "polling_tool": "kept until",
        "alert_channel": "kept until",
        "stream": "kept until",
        "price_list": "kept until",
        "unit_path": "kept while a price list names it",
        # The application may; nothing of it does.
        "api_key": "",
        "producer": "",
    }


@pytest.mark.parametrize("table", sorted(other_times()))
def test_tables_with_other_retention_state_when(table: str) -> None:
    assert notes()[table].facts["Retention"].startswith(other_times()[table] or "kept")


def test_kept_tables_are_not_deletable() -> None:
    """But for merging two calls into one, which keeps their events."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c, unnest(%s::text[]) AS role"
            " WHERE c.relname = ANY(%s) AND has_table_privilege(role, c.oid, 'DELETE')",
            [["tooltrail_app", "tooltrail_keeper"], ours()],
        )
        deletable = {name for (name,) in cursor.fetchall()}
    assert deletable == set(other_times()) | {
        "invocation",
        "trace",
        "violation",
        "violation_day",
        "call_units",
        "tool_regression_case",  # with the version of its set
    }


def test_dependent_rows_are_deleted_by_cascade() -> None:
    for table in ("payload_search_hit", "tool_import_tool"):
        parent = notes()[table].facts["Retention"].removesuffix(".").rpartition(" ")[2]
        with connections["owner"].cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_constraint WHERE conrelid = %s::regclass"
                " AND confrelid = %s::regclass AND contype = 'f' AND confdeltype = 'c'",
                [table, parent],
            )
            assert cursor.fetchone() == (1,)
