"""The named statements: each exists, can be distributed, and fits the code that reads its rows."""

import re
from pathlib import Path

import pytest
from django.db import connection

from audit import sql
from tenants.scope import tenant_scope
from tests.support.factories import Cast


def test_duplicate_statement_name_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("-- one --\nSELECT 1\n")
    (tmp_path / "b.sql").write_text("-- two --\nSELECT 2\n\n-- one --\nSELECT 3\n")
    with pytest.raises(ValueError, match=r"b.sql: one is defined twice"):
        sql.load(tmp_path)


@pytest.mark.parametrize("name", sql.QUERIES)
def test_statements_name_the_tenant_and_avoid_operators_that_prevent_index_use(name: str) -> None:
    statement = re.sub(r"--.*", "", sql.QUERIES[name])
    assert "%(tenant_id)s" in statement
    assert not re.search(
        r"\bLIKE\b|@>|\bOFFSET\b|\bnow\(\)|SELECT count\(\*\)\s+FROM \w+\s+WHERE", statement
    )


@pytest.fixture(scope="module")
def changing() -> dict[str, str]:
    """The functions whose result may change: `v` from call to call, `s` from statement to
    statement."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT proname, min(provolatile::text) FROM pg_proc GROUP BY proname")
        return {name: kind for name, kind in cursor.fetchall() if kind != "i"}


def refused_functions(statement: str, changing: dict[str, str]) -> set[str]:
    """The functions of a change that Citus refuses: volatile, and after a conflict also stable."""
    _, _, on_conflict = statement.partition("DO UPDATE SET")
    refused = {name for name in _functions(on_conflict) if name in changing}
    if re.search(r"\bUPDATE \w+ |\bDELETE FROM\b", statement.replace("DO UPDATE", "")):
        refused |= {name for name in _functions(statement) if changing.get(name) == "v"}
    return refused


def _functions(text: str) -> list[str]:
    return re.findall(r"\b(\w+)\(", text)


@pytest.mark.parametrize("name", sql.QUERIES)
def test_changes_have_no_function_that_citus_refuses(name: str, changing: dict[str, str]) -> None:
    assert refused_functions(re.sub(r"--.*", "", sql.QUERIES[name]), changing) == set()


def test_refused_functions_would_be_detected(changing: dict[str, str]) -> None:
    change = "UPDATE note SET salt = gen_random_uuid() WHERE tenant_id = %(tenant_id)s"
    assert refused_functions(change, changing) == {"gen_random_uuid"}
    upsert = "INSERT INTO a VALUES (random()) ON CONFLICT DO UPDATE SET b = convert_to(c, 'UTF8')"
    assert refused_functions(upsert, changing) == {"convert_to"}
    assert refused_functions("SELECT gen_random_uuid()", changing) == set()


def test_trace_id_prefix_uses_an_index_under_row_level_security(acme: Cast) -> None:
    """LIKE is not leakproof and would scan every tenant's rows; ranges are."""
    statement = (
        "EXPLAIN SELECT trace_id FROM trace WHERE tenant_id = %s AND started_on = %s"
        " AND trace_id >= 'abc' AND trace_id < 'abd'"
    )
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(statement, [acme.tenant.id, acme.tenant.created_at.date()])
        plan = "\n".join(row[0] for row in cursor.fetchall())
    condition = re.search(r"Index Cond: .*", plan)
    assert condition is not None, plan
    assert "trace_id >= 'abc'" in condition[0]


def test_fragments_are_expanded_in_statements(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(
        "-- {{inner}} --\n-- Why it is so.\nb = 1\n\n"
        "-- {{outer}} --\n-- Of both.\na AND {{inner}}\n\n"
        "-- one --\nSELECT 1 WHERE {{outer}}\n"
    )
    assert sql.load(tmp_path) == {"one": "SELECT 1 WHERE a AND b = 1"}
    (tmp_path / "b.sql").write_text("-- two --\nSELECT {{nowhere}}\n")
    with pytest.raises(KeyError, match="nowhere"):
        sql.load(tmp_path)
