"""A database with data is distributed over a Citus cluster while senders go on."""

import json
import os
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import psycopg
import pytest

from config.postgresql import cluster_nodes, database, distribution, roles
from tests.support.installation import Installation, announcement, end, new_installation, until
from tests.support.installation_requests import Senders, status_code
from tests.support.management_commands import init_database, manage


def test_every_table_of_tenants_is_planned_with_those_it_refers_to() -> None:
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as connection:
        todo = distribution.plan(connection)
        tenants_tables = connection.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE a.attname = 'tenant_id' AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
            " AND c.relnamespace = 'public'::regnamespace"
        ).fetchall()
    assert sorted(todo.tables) == sorted(name for (name,) in tenants_tables)
    assert todo.groups[0].tables[0] == "ledger_head", "the others are placed beside it"
    assert todo.references == ("tenant", "app_user"), "users refer to tenants"
    of_tools = next(group for group in todo.groups if "tool" in group.tables)
    assert {"tool_version", "tool_change", "tool_draft"} <= set(of_tools.tables)
    assert {key.refers_to for key in of_tools.keys} == {"tool", "tool_regression"}
    assert todo.functions == ("add_capped(bigint,bigint)",)


@pytest.mark.slow
def test_server_without_citus_is_refused(tmp_path: Path) -> None:
    url = os.environ["TEST_ADMIN_URL"]
    completed = manage("distribute", "plan", "--admin-url", url, TOOLTRAIL_VAR=str(tmp_path))
    assert completed.returncode == 1
    assert completed.stderr.count("\n") == 1
    name = "tooltrail_absent"
    options = ("--admin-url", url, "--name", name)
    completed = manage("distribute", "status", *options, TOOLTRAIL_VAR=str(tmp_path))
    assert completed.returncode == 1
    assert f'database "{name}" does not exist' in completed.stderr


@pytest.fixture
def installation() -> Iterator[Installation]:
    with new_installation() as created:
        yield created


def apply_until_interrupted(coordinator: str, worker: str) -> None:
    """Run `apply` with one node, until the fifth table or group of tables is done."""
    cluster_nodes.join_nodes(coordinator, [worker], roles.DATABASE, {})
    done: list[str] = []

    def report(line: str) -> None:
        done.append(line)
        if len(done) == 5:
            raise KeyboardInterrupt

    url = database.with_database(coordinator, roles.DATABASE)
    with psycopg.connect(url, autocommit=True) as connection:
        todo = distribution.plan(connection)
        with pytest.raises(KeyboardInterrupt):
            distribution.apply(connection, todo, shards=2, report=report)


@pytest.mark.slow
@pytest.mark.sampled("cluster", 0)  # a minute
def test_senders_lose_nothing_while_the_database_is_distributed_and_balanced(
    nodes: list[str], installation: Installation
) -> None:
    coordinator, *workers = nodes
    urls = init_database(coordinator, installation.var)
    facts = announcement(installation.up("--json", "--dev-tenant", "acme", **urls))
    options = ["--admin-url", coordinator]
    for worker in workers:
        options += ["--worker", worker]
    environment = {"TOOLTRAIL_VAR": str(installation.var), **urls}

    completed = manage("distribute", "plan", *options, "--json", **environment)
    assert completed.returncode == 0, completed.stderr
    planned = json.loads(completed.stdout)
    assert planned["rows"]["tenant"] == 1
    with Senders(facts) as senders:
        until(lambda: senders.answers[HTTPStatus.OK] > 20)
        apply_until_interrupted(coordinator, workers[0])
        refused = senders.answers[HTTPStatus.SERVICE_UNAVAILABLE]
        until(lambda: senders.answers[HTTPStatus.SERVICE_UNAVAILABLE] > refused + 5)
        taken = senders.answers[HTTPStatus.OK]
        applied = manage("distribute", "apply", *options, "--shards", "2", "--json", **environment)
        assert applied.returncode == 0, applied.stderr
        until(lambda: senders.answers[HTTPStatus.OK] > taken + 20)
        balanced = manage("distribute", "rebalance", *options[:2], **environment)
        assert balanced.returncode == 0, balanced.stderr
        taken = senders.answers[HTTPStatus.OK]
        until(lambda: senders.answers[HTTPStatus.OK] > taken + 20)
    # A connection that was closed at the end of `apply` may be that of a request.
    assert set(senders.answers) <= {HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE, 0}
    assert senders.answers[HTTPStatus.SERVICE_UNAVAILABLE] > 0
    until(lambda: status_code(facts["url"] + "/readyz") == HTTPStatus.OK)

    rest = json.loads(applied.stdout)["tables"]
    assert 0 < len(rest) < len(planned["tables"]), "it went on where it was interrupted"
    status = json.loads(
        manage("distribute", "status", *options[:2], "--json", **environment).stdout
    )
    assert status["not_distributed"] == []
    shards = [node["shards"] for node in status["nodes"]]
    assert len(shards) == len(workers)
    assert len(set(shards)) == 1, "every node has its share"
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as connection:
        (stored,) = connection.execute("SELECT count(*) FROM invocation").fetchone() or (0,)
        for table in ("ledger_head", "batch"):
            local = connection.execute("SELECT pg_relation_size(%s::regclass)", [table])
            assert local.fetchone() == (0,), "no rows are left on the coordinator"
    assert stored >= senders.answers[HTTPStatus.OK]
    checked = manage("reindex", "--check", "--tenant", "acme", **environment)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # It is run again after an upgrade.
    again = manage("distribute", "apply", *options, "--json", **environment)
    assert json.loads(again.stdout) == {"references": [], "tables": []}
    with psycopg.connect(urls["DATABASE_URL"]) as connection:
        assert connection.execute("SELECT count(*) FROM invocation").fetchone() == (0,)
    assert end(installation.started[-1]) == 0
