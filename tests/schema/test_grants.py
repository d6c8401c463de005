"""The three database roles: their grants, and what happens without one."""

import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, transaction
from psycopg import errors

from audit.index.partitions import Partition
from config.postgresql.roles import APP, KEEPER, OWNER
from tenants.models import User
from tests.support.factories import Cast, make_call, send_events

EVERYTHING = {"SELECT", "INSERT", "UPDATE", "DELETE"}
NARROWER = {
    "tolerated_migration": {"SELECT"},
    # What was said and done stays as it was: the log, what people did, what was published.
    "batch": {"SELECT", "INSERT"},
    "gap": {"SELECT", "INSERT"},
    "action": {"SELECT", "INSERT", "UPDATE (ledger_index)"},
    "tool_version": {"SELECT", "INSERT"},
    "tool_change": {"SELECT", "INSERT"},
    "alert": {"SELECT", "INSERT", "UPDATE"},
    "tool": {"SELECT", "INSERT", "UPDATE"},
    "ledger_head": {"SELECT", "INSERT", "UPDATE"},
    "key_quota": {"SELECT", "INSERT", "UPDATE"},
    "observed_tool": {"SELECT", "INSERT", "UPDATE"},
    # A refused line stays; of it only what became of it is written.
    "rejected_event": {
        "SELECT",
        "INSERT",
        "UPDATE (resolution)",
        "UPDATE (resolved_at)",
        "UPDATE (resolved_by_id)",
        "UPDATE (resolved_by_name)",
        "UPDATE (discard_reason)",
        "UPDATE (redrive_batch_id)",
        "UPDATE (redrive_edited)",
    },
    # What a link leads to, and for how long, stays as it was.
    "share_link": {
        "SELECT",
        "INSERT",
        "UPDATE (payloads_by)",
        "UPDATE (payloads_reason)",
        "UPDATE (revoked_at)",
        "UPDATE (revoked_by)",
        "UPDATE (opened_count)",
        "UPDATE (opened_at)",
    },
    # Days are dropped whole, by the owner. What was merged into another call may go, and no more.
    "rollup": {"SELECT", "INSERT", "UPDATE"},
    "quarter_rollup": {"SELECT", "INSERT", "UPDATE"},
    "error_rollup": {"SELECT", "INSERT", "UPDATE"},
    # Of violations, the server's in calls made of spans may be replaced, and no more.
    "violation": {"SELECT", "INSERT", "DELETE"},
    "decision": {"SELECT", "INSERT"},
    # What a server said stays as it was.
    "definition": {"SELECT", "INSERT"},
    "definition_change": {"SELECT", "INSERT", "UPDATE (ledger_index)"},
    "definition_server": {"SELECT", "INSERT", "UPDATE"},
    "served_definition": {"SELECT", "INSERT", "UPDATE"},
    # A version of a regression set stays; its cases go with it.
    "tool_regression": {"SELECT", "INSERT"},
    # What is archived stays on record.
    "archive": {"SELECT", "INSERT", "UPDATE"},
    "archive_segment": {"SELECT", "INSERT", "UPDATE (keys_gone_at)"},
    "audit_sample": {"SELECT", "INSERT", "UPDATE"},
    "audit_sample_part": {"SELECT", "INSERT"},
    "audit_sample_call": {
        "SELECT",
        "INSERT",
        "UPDATE (conclusion)",
        "UPDATE (note)",
        "UPDATE (exception)",
        "UPDATE (salt)",
        "UPDATE (texts)",
        "UPDATE (concluded_at)",
        "UPDATE (concluded_by)",
    },
    # A report stays as it was made until its time is over.
    "report": {"SELECT", "INSERT", "DELETE"},
    "report_schedule": {"SELECT", "INSERT", "UPDATE"},
    "llm_usage": {
        "SELECT",
        "INSERT",
        "UPDATE (agent)",
        "UPDATE (agent_version)",
        "UPDATE (run_id)",
        "UPDATE (is_inner)",
    },
    "otlp_span": {
        "SELECT",
        "INSERT",
        "UPDATE (invocation_id)",
        "UPDATE (call_started_at)",
    },
    # The tree and what was signed are the worker's, as the keeper.
    "ledger_tile": {"SELECT"},
    "ledger_checkpoint": {"SELECT"},
    "ledger_signer": {"SELECT"},
    "ledger_key": {"SELECT"},
    "ledger_erasure": {"SELECT"},
    "ledger_check": {"SELECT", "INSERT", "UPDATE"},
    "witness_answer": {"SELECT", "INSERT"},
    # An erasure and what it found stay on record.
    "erasure": {"SELECT", "INSERT", "UPDATE"},
    "erasure_call": {"SELECT", "INSERT"},
    # A hold stays on record; of it only its release is written.
    "legal_hold": {
        "SELECT",
        "INSERT",
        "UPDATE (released_at)",
        "UPDATE (released_by)",
        "UPDATE (release_reason)",
    },
    # So does a request to lower the floor; of it only the decision is written.
    "floor_request": {
        "SELECT",
        "INSERT",
        "UPDATE (state)",
        "UPDATE (decided_at)",
        "UPDATE (decided_by)",
        "UPDATE (decided_person)",
        "UPDATE (decision_reason)",
    },
    # Of an invitation only its end is written.
    "invitation": {"SELECT", "INSERT", "DELETE", "UPDATE (accepted_at)", "UPDATE (revoked_at)"},
    # Without row-level security, hence every tenant's: what the application does write.
    "tenant": {
        "SELECT",
        "INSERT",
        "UPDATE (name)",
        "UPDATE (time_zone)",
        "UPDATE (suspended_at)",
        "UPDATE (second_factor_roles)",
        "UPDATE (step_up)",
        "UPDATE (session_idle_minutes)",
        "UPDATE (session_max_hours)",
        "UPDATE (sso_only)",
        "UPDATE (anonymous_links)",
    },
    "identity_provider": {
        "SELECT",
        "INSERT",
        "UPDATE (name)",
        "UPDATE (settings)",
        "UPDATE (secret_box)",
        "UPDATE (role_by_group)",
        "UPDATE (default_role)",
        "UPDATE (disabled_at)",
    },
    "installation_provider": {
        "SELECT",
        "INSERT",
        "UPDATE (name)",
        "UPDATE (settings)",
        "UPDATE (secret_box)",
        "UPDATE (roles)",
        "UPDATE (disabled_at)",
    },
    "directory_user": {
        "SELECT",
        "INSERT",
        "DELETE",
        "UPDATE (external_id)",
        "UPDATE (user_name)",
        "UPDATE (display_name)",
        "UPDATE (is_active)",
        "UPDATE (changed_at)",
    },
    "directory_group": {
        "SELECT",
        "INSERT",
        "DELETE",
        "UPDATE (external_id)",
        "UPDATE (display_name)",
        "UPDATE (members)",
        "UPDATE (changed_at)",
    },
    "socialaccount_socialapp": {"SELECT"},
    "socialaccount_socialtoken": {"SELECT", "DELETE"},
    "account_emailaddress": {"SELECT"},
    "account_emailconfirmation": {"SELECT"},
    "app_user": {
        "SELECT",
        "INSERT",
        "UPDATE (password)",
        "UPDATE (last_login)",
        "UPDATE (is_staff)",
        "UPDATE (is_active)",
        "UPDATE (has_initial_password)",
        "UPDATE (email)",
        "UPDATE (time_zone)",
        "UPDATE (theme)",
        "UPDATE (default_range)",
        "UPDATE (last_tenant_id)",
    },
    "django_session": {
        "SELECT",
        "INSERT",
        "DELETE",
        "UPDATE (session_data)",
        "UPDATE (expire_date)",
    },
    "sign_in_failure": {"SELECT", "INSERT", "DELETE"},
    "auth_group": {"SELECT"},
    "auth_group_permissions": {"SELECT"},
    "auth_permission": {"SELECT"},
    "app_user_groups": {"SELECT"},
    "app_user_user_permissions": {"SELECT"},
    "django_admin_log": {"SELECT"},
    "django_content_type": {"SELECT"},
    "django_migrations": {"SELECT"},
    "tenant_setting": {"SELECT", "INSERT", "UPDATE"},
    # What is left of a tenant is written by whoever deletes it: the owner.
    "tombstone": {"SELECT"},
}
"""Of the application, per table; it has `EVERYTHING` on all others, and row-level security."""
KEEPERS = {
    # What it erases it says, in the ledger and among the actions.
    "batch": {"SELECT", "INSERT", "UPDATE (payload)"},
    "action": {"INSERT"},
    "ledger_erasure": {"SELECT", "INSERT"},
    "rejected_event": {"SELECT", "UPDATE (raw)"},
    "legal_hold": {"SELECT"},
    "erasure": {"SELECT", "UPDATE"},
    "erasure_call": {"SELECT"},
    "archive": {"SELECT", "UPDATE (at_once_to)", "UPDATE (claim)", "UPDATE (claimed_until)"},
    "archive_segment": {"SELECT"},
    "payload_search_hit": {"SELECT", "DELETE"},
    "note": {"SELECT", "UPDATE (text)", "UPDATE (is_erased)", "UPDATE (salt)"},
    "incident": {
        "SELECT",
        "UPDATE (timeline)",
        "UPDATE (page)",
        "UPDATE (is_erased)",
    },
    "tool_regression_case": {
        "SELECT",
        "UPDATE (args)",
        "UPDATE (output)",
        "UPDATE (is_erased)",
    },
    "audit_sample_call": {
        "SELECT",
        "UPDATE (note)",
        "UPDATE (exception)",
        "UPDATE (salt)",
        "UPDATE (is_erased)",
    },
    "otlp_span": {"SELECT", "UPDATE (context)"},
    "invocation": {
        "SELECT",
        "UPDATE (call_id)",
        "UPDATE (error_message)",
        "UPDATE (idempotency_key)",
        "UPDATE (principal)",
    },
    "violation": {"SELECT", "UPDATE (expected)", "UPDATE (received)"},
    "decision": {
        "SELECT",
        "UPDATE (call_id)",
        "UPDATE (reason)",
        "UPDATE (expected)",
        "UPDATE (requested_by)",
    },
    "tenant_setting": {"SELECT", "UPDATE (erased_to)"},
    # It folds and signs: what is there grows at its end, and never goes.
    "ledger_head": {"SELECT", "INSERT", "UPDATE"},
    "ledger_tile": {"SELECT", "INSERT", "UPDATE (hashes)"},
    "ledger_checkpoint": {"SELECT", "INSERT"},
    "ledger_signer": {
        *("SELECT", "INSERT", "UPDATE (refusal)", "UPDATE (since)"),
        *("UPDATE (remembered_epoch)", "UPDATE (remembered_size)"),
    },
    "ledger_key": {"SELECT", "INSERT", "UPDATE (signs_until)"},
}


def connect(variable: str) -> psycopg.Connection[Any]:
    return psycopg.connect(os.environ[variable], autocommit=True)


@pytest.fixture
def owner() -> Iterator[psycopg.Connection[Any]]:
    with connect("DATABASE_OWNER_URL") as connection:
        yield connection


def grants(owner: psycopg.Connection[Any], role: str) -> dict[str, set[str]]:
    """What a role may do with each table and its columns, through whatever grant."""
    privileges: dict[str, set[str]] = {}
    for table, privilege in owner.execute(
        """
        SELECT c.relname, privilege FROM pg_class c, unnest(array[
            'SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'
        ]) AS privilege
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
          AND has_table_privilege(%(role)s, c.oid, privilege)
        UNION ALL
        SELECT c.relname, acl.privilege_type || ' (' || a.attname || ')'
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid, aclexplode(a.attacl) AS acl
        WHERE c.relnamespace = 'public'::regnamespace
          AND acl.grantee IN (0, %(role)s::regrole)
        """,
        {"role": role},
    ):
        privileges.setdefault(table, set()).add(privilege)
    return privileges


def test_application_role_has_exactly_the_expected_grants(owner: psycopg.Connection[Any]) -> None:
    tables = owner.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind IN ('r', 'p') AND NOT relispartition"
    )
    expected = {table: NARROWER.get(table, EVERYTHING) for (table,) in tables}
    assert set(NARROWER) <= set(expected)
    assert grants(owner, APP) == expected


def test_keeper_role_has_exactly_the_expected_grants(owner: psycopg.Connection[Any]) -> None:
    assert grants(owner, KEEPER) == KEEPERS


def test_no_other_role_has_grants(owner: psycopg.Connection[Any]) -> None:
    others = owner.execute(
        """
        SELECT c.relname, acl.grantee::regrole::text FROM pg_class c, aclexplode(c.relacl) AS acl
        WHERE c.relnamespace = 'public'::regnamespace
          AND acl.grantee::regrole::text NOT IN (%s, %s, %s)
        """,
        [OWNER, APP, KEEPER],
    ).fetchall()
    assert others == []
    public_may = owner.execute(
        """
        SELECT has_database_privilege('public', current_database(), 'CONNECT, TEMPORARY'),
               has_schema_privilege('public', 'public', 'CREATE')
        """
    ).fetchone()
    assert public_may == (False, False)


def test_additional_grants_are_detected(owner: psycopg.Connection[Any]) -> None:
    """The reading of the catalog itself: by table, by column, to everybody."""
    before = grants(owner, APP)
    with owner.transaction(force_rollback=True):
        owner.execute("GRANT UPDATE (answer), TRUNCATE ON batch TO tooltrail_app")
        owner.execute("GRANT DELETE ON gap TO PUBLIC")
        after = grants(owner, APP)
    assert after["batch"] - before["batch"] == {"UPDATE (answer)", "TRUNCATE"}
    assert after["gap"] - before["gap"] == {"DELETE"}


@pytest.mark.parametrize(("role", "bypasses"), [(OWNER, True), (APP, False), (KEEPER, False)])
def test_role_attributes_and_ownership_are_as_expected(
    owner: psycopg.Connection[Any], role: str, bypasses: bool
) -> None:
    attributes = owner.execute(
        "SELECT rolbypassrls, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolcanlogin"
        " FROM pg_roles WHERE rolname = %s",
        [role],
    ).fetchone()
    assert attributes == (bypasses, False, False, False, False, True)
    memberships = owner.execute(
        "SELECT roleid::regrole FROM pg_auth_members WHERE member = %s::regrole", [role]
    )
    assert memberships.fetchall() == []
    owned = owner.execute(
        "SELECT EXISTS (SELECT FROM pg_class WHERE relowner = %(role)s::regrole)"
        " OR EXISTS (SELECT FROM pg_proc WHERE proowner = %(role)s::regrole)",
        {"role": role},
    ).fetchone()
    assert owned == (role == OWNER,)


PARTITION = Partition(datetime.now(UTC).date(), "invocation").name


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE batch SET payload = NULL",
        "DELETE FROM batch",
        "DELETE FROM tenant",
        "UPDATE tenant SET slug = ''",
        "DELETE FROM app_user",
        "UPDATE app_user SET username = ''",
        "UPDATE app_user SET is_superuser = true",
        "UPDATE django_session SET session_key = ''",
        "INSERT INTO auth_group (name) VALUES ('everything')",
        "DELETE FROM django_migrations",
        "TRUNCATE batch",
        "TRUNCATE invocation",
        "UPDATE ledger_tile SET hashes = ''",
        "INSERT INTO ledger_checkpoint SELECT * FROM ledger_checkpoint",
        "UPDATE ledger_key SET signs_until = NULL",
        "TRUNCATE violation",
        "UPDATE violation SET code = ''",
        "UPDATE action SET verb = ''",
        "UPDATE tool_version SET number = 1",
        "UPDATE tool_change SET reason = ''",
        "DELETE FROM tool_change",
        f"SELECT * FROM {PARTITION}",
        f"INSERT INTO {PARTITION} SELECT * FROM invocation",
        "ALTER TABLE batch DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE batch NO FORCE ROW LEVEL SECURITY",
        "CREATE POLICY everything ON batch USING (true)",
        f"DROP TABLE {PARTITION}",
        "CREATE TABLE mine (id integer)",
        "CREATE TEMPORARY TABLE mine (id integer)",
        "SET ROLE tooltrail_owner",
        "SET SESSION AUTHORIZATION tooltrail_owner",
        "ALTER ROLE tooltrail_app BYPASSRLS",
        "SET row_security = off; SELECT * FROM batch",
        "COPY (SELECT 1) TO PROGRAM 'true'",
    ],
)
def test_forbidden_statements_are_denied_to_the_application(statement: str) -> None:
    with connect("DATABASE_URL") as app, pytest.raises(errors.InsufficientPrivilege):
        app.execute(statement)


@pytest.mark.parametrize("variable", ["DATABASE_URL", "DATABASE_OWNER_URL"])
def test_no_account_can_be_a_superuser(variable: str) -> None:
    """Grants cannot leave out a column that Django names in each INSERT; a constraint can."""
    name = f"eve-{uuid.uuid4().hex[:8]}"
    with pytest.raises(IntegrityError, match="app_user_superuser_check"), transaction.atomic():
        User.objects.create_superuser(name)
    with connect(variable) as connection:
        statement = (
            "INSERT INTO app_user (username, password, is_superuser, first_name, last_name,"
            " email, is_staff, is_active, date_joined, default_range, theme, time_zone)"
            " VALUES (%s, '', %s, '', '', '', true, true, now(), '', '', '')"
        )
        with connection.transaction(force_rollback=True):
            assert connection.execute(statement, [name, False]).rowcount == 1
        with pytest.raises(errors.CheckViolation):
            connection.execute(statement, [name, True])


def test_owner_cannot_make_an_account_a_superuser(
    acme: Cast, owner: psycopg.Connection[Any]
) -> None:
    with pytest.raises(errors.CheckViolation):
        owner.execute("UPDATE app_user SET is_superuser = true WHERE id = %s", [acme.admin.pk])


@pytest.mark.parametrize("table", ["invocation", "trace"])
def test_application_cannot_delete_listed_calls_and_traces(acme: Cast, table: str) -> None:
    """It may delete what was merged into another call: row-level security says so."""
    send_events(acme.tenant, make_call())
    with connect("DATABASE_URL") as app:
        app.execute("SELECT set_config('tooltrail.tenant_id', %s, false)", [str(acme.tenant.id)])
        assert app.execute(f"DELETE FROM {table}").rowcount == 0
        count = app.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert count == (1,)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM invocation",
        "SELECT * FROM api_key",
        "SELECT * FROM app_user",
        "UPDATE batch SET answer = ''",
        "UPDATE batch SET leaves = ''",
        "DELETE FROM batch",
        "TRUNCATE batch",
        "DELETE FROM ledger_tile",
        "UPDATE ledger_checkpoint SET note = ''",
        "DELETE FROM ledger_checkpoint",
        f"SELECT * FROM {PARTITION}",
        "SET ROLE tooltrail_owner",
    ],
)
def test_forbidden_statements_are_denied_to_the_keeper(statement: str) -> None:
    with connect("DATABASE_KEEPER_URL") as keeper, pytest.raises(errors.InsufficientPrivilege):
        keeper.execute(statement)


def test_keeper_erases_payloads_of_one_tenant_only(acme: Cast, globex: Cast) -> None:
    for cast in (acme, globex):
        send_events(cast.tenant, make_call())
    with connect("DATABASE_KEEPER_URL") as keeper:
        assert keeper.execute("UPDATE batch SET payload = NULL").rowcount == 0
        with keeper.transaction():
            keeper.execute(f"SET LOCAL tooltrail.tenant_id = '{acme.tenant.id}'")
            assert keeper.execute("UPDATE batch SET payload = NULL").rowcount == 1
    with connect("DATABASE_OWNER_URL") as everything:
        rows = everything.execute(
            "SELECT tenant_id, payload IS NULL FROM batch WHERE tenant_id = ANY(%s)",
            [[acme.tenant.id, globex.tenant.id]],
        ).fetchall()
    assert set(rows) == {(acme.tenant.id, True), (globex.tenant.id, False)}


@pytest.mark.parametrize("setting", ["''", "'{stranger}'"])
def test_tenant_rows_are_invisible_without_a_scope(acme: Cast, setting: str) -> None:
    send_events(acme.tenant, make_call())
    with connect("DATABASE_URL") as app, app.transaction():
        app.execute(f"SET LOCAL tooltrail.tenant_id = {setting.format(stranger=uuid.uuid4())}")
        for table in (
            "batch",
            "invocation",
            "trace",
            "rollup",
            "quarter_rollup",
            "error_rollup",
            "api_key",
        ):
            assert app.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
