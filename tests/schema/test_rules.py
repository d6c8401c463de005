"""Every table follows the rules, and each rule detects a table that does not."""

import os
from collections.abc import Iterator
from datetime import date
from typing import Any

import psycopg
import pytest

from audit.index.partitions import PARTITIONED_TABLES, Partition
from tests.schema.rules import EXEMPT, FURTHER_POLICIES, RULES, Rule, odd_policies

type Connection = psycopg.Connection[Any]

FAR = date(2099, 1, 1)
COLUMNS = "tenant_id uuid NOT NULL, id uuid NOT NULL"
KEY = "PRIMARY KEY (tenant_id, id)"
USING = "tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid"
ON = "ALTER TABLE bad ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
PARENT = f"CREATE TABLE parent ({COLUMNS}) PARTITION BY LIST (id)"
PARTITION = f"{PARENT}; CREATE TABLE bad PARTITION OF parent DEFAULT"
CLOSED = f"{PARTITION}; REVOKE ALL ON bad FROM tooltrail_app"
TRIGGER = "suppress_redundant_updates_trigger()"
GOOD = f"""
    CREATE TABLE bad ({COLUMNS}, {KEY});
    {ON};
    CREATE POLICY tenant_isolation ON bad USING ({USING}) WITH CHECK ({USING});
"""
UNIQUE = f"{GOOD} ALTER TABLE bad ADD UNIQUE (id)"
SHARDED = GOOD.replace(f"{KEY})", f"{KEY}) PARTITION BY HASH (tenant_id)")


@pytest.fixture
def owner() -> Iterator[Connection]:
    """The owner's connection; what a test makes is rolled back."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as connection:
        yield connection
        connection.rollback()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_table_follows_the_rule(owner: Connection, rule: Rule) -> None:
    assert rule.offenders(owner) == []


def test_every_policy_is_known(owner: Connection) -> None:
    assert odd_policies(owner) == []
    rows = owner.execute("SELECT tablename, policyname FROM pg_policies").fetchall()
    assert set(FURTHER_POLICIES) <= set(rows), "no longer there: take it from the list"


def test_exempt_tables_exist_with_a_reason(owner: Connection) -> None:
    for table, why in EXEMPT.items():
        owner.execute("SELECT %s::regclass", [table])
        assert why


def test_rules_cover_the_important_tables(owner: Connection) -> None:
    """A query that finds no table finds no offender either."""
    for table in ("batch", "membership", "tool_version", *PARTITIONED_TABLES):
        owner.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        assert table in RULES[0].offenders(owner)


def broken(name: str) -> Rule:
    """The rule whose name starts so."""
    (rule,) = (rule for rule in RULES if rule.name.startswith(name))
    return rule


FOREIGN_KEY = "ALTER TABLE bad ADD other uuid, ADD FOREIGN KEY"
BAD = [
    ("row-level security", f"CREATE TABLE bad ({COLUMNS}, {KEY})"),
    ("row-level security", f"{GOOD} ALTER TABLE bad NO FORCE ROW LEVEL SECURITY"),
    ("row-level security", f"{GOOD} ALTER TABLE bad DISABLE ROW LEVEL SECURITY"),
    ("the tenant's policy", f"CREATE TABLE bad ({COLUMNS}, {KEY}); {ON}"),
    ("the tenant's policy", f"{GOOD} ALTER POLICY tenant_isolation ON bad USING (true)"),
    ("the tenant's policy", f"{GOOD} ALTER POLICY tenant_isolation ON bad WITH CHECK (true)"),
    ("the tenant's policy", f"{GOOD} ALTER POLICY tenant_isolation ON bad TO tooltrail_app"),
    ("the tenant's policy", f"{GOOD} ALTER POLICY tenant_isolation ON bad RENAME TO other"),
    ("the tenant's policy", GOOD.replace("ON bad USING", "ON bad FOR UPDATE USING")),
    ("a policy has", f"{GOOD} CREATE POLICY more ON bad USING (EXISTS (SELECT FROM tenant))"),
    ("a partition is closed", PARTITION),
    ("a partition is closed", f"{CLOSED}; CREATE POLICY more ON bad USING (true)"),
    ("tenant_id is", "CREATE TABLE bad (tenant_id uuid)"),
    ("tenant_id is", "CREATE TABLE bad (tenant_id bigint NOT NULL)"),
    ("there is a primary key", f"CREATE TABLE bad ({COLUMNS})"),
    ("every key", f"CREATE TABLE bad ({COLUMNS}, PRIMARY KEY (id))"),
    ("every key", UNIQUE),
    ("every key", f"{GOOD} CREATE UNIQUE INDEX ON bad (id, tenant_id)"),
    ("a reference between", f"{UNIQUE}; {FOREIGN_KEY} (other) REFERENCES bad (id)"),
    ("a reference between", f"{GOOD} {FOREIGN_KEY} (other, id) REFERENCES bad (tenant_id, id)"),
    ("a reference is checked", f"{GOOD} {FOREIGN_KEY} (tenant_id) REFERENCES tenant DEFERRABLE"),
    ("a reference is checked", f"{SHARDED} {FOREIGN_KEY} (tenant_id) REFERENCES tenant"),
    ("no triggers", f"{GOOD} CREATE TRIGGER t BEFORE UPDATE ON bad EXECUTE FUNCTION {TRIGGER}"),
    ("no numbers", f"{GOOD} ALTER TABLE bad ADD n bigserial"),
    ("no numbers", f"{GOOD} ALTER TABLE bad ADD n bigint GENERATED ALWAYS AS IDENTITY"),
    ("no numbers", f"{GOOD} ALTER TABLE bad ADD n text GENERATED ALWAYS AS (id::text) STORED"),
    ("partitioned by", SHARDED),
    ("a view asks", "CREATE VIEW bad AS SELECT * FROM invocation"),
    ("a view asks", "CREATE MATERIALIZED VIEW bad AS SELECT 1"),
    ("no function", "CREATE FUNCTION bad() RETURNS int LANGUAGE sql SECURITY DEFINER RETURN 1"),
]  # fmt: skip  # by line as they belong together


@pytest.mark.parametrize(("name", "statements"), BAD)
def test_each_rule_detects_a_violation(owner: Connection, name: str, statements: str) -> None:
    rule = broken(name)
    owner.execute(statements)
    offenders = rule.offenders(owner)
    assert len(offenders) == 1
    assert offenders[0].startswith("bad")


def test_each_rule_has_a_violating_example() -> None:
    # Who owns what cannot be broken by the owner; test_grants.py asks who may own anything.
    proven = {broken(name) for name, _ in BAD} | {broken("everything belongs")}
    assert proven == set(RULES)


def test_valid_table_violates_no_rule(owner: Connection) -> None:
    owner.execute(GOOD)
    assert [rule.name for rule in RULES if rule.offenders(owner)] == []
    assert odd_policies(owner) == []


@pytest.mark.parametrize(
    "policy",
    [
        "CREATE POLICY more ON batch FOR SELECT USING (true)",
        "CREATE POLICY tenant_isolation ON tenant USING (true)",
        "ALTER POLICY own_memberships ON membership USING (true)",
    ],
)
def test_unknown_policy_is_detected(owner: Connection, policy: str) -> None:
    owner.execute(policy)
    assert len(odd_policies(owner)) == 1


def test_future_partitions_follow_the_rules(owner: Connection) -> None:
    """What the worker will make: `apply` on days that nobody has made yet."""
    from audit.index import partitions

    created = [Partition(FAR, table) for table in PARTITIONED_TABLES]
    partitions.apply(created)
    try:
        assert all(rule.offenders(owner) == [] for rule in RULES)
        names = [partition.name for partition in created]
        rows = owner.execute(
            "SELECT relname FROM pg_class WHERE relname = ANY(%s) AND relforcerowsecurity", [names]
        )
        assert {name for (name,) in rows} == set(names)
    finally:
        owner.rollback()
        for partition in created:
            owner.execute(f"DROP TABLE {partition.name}")
        owner.commit()
