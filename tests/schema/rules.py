"""The rules every table must keep, as questions to pg_catalog: each answers with its offenders.

They are about isolation (docs: row-level security, keys, grants) and about what makes the
schema distributable by tenant. A new table is under them the moment it exists; a new rule
needs a table in `test_rules.py` that breaks it.
"""

from dataclasses import dataclass
from typing import Any

import psycopg

EXEMPT: dict[str, str] = {}
"""Tables with a tenant_id that need no row-level security, and why. There are none."""

ISOLATION = (
    "(tenant_id = (NULLIF(current_setting('tooltrail.tenant_id'::text, true), ''::text))::uuid)"
)
"""The expression of every table's policy, as PostgreSQL prints it."""

FURTHER_POLICIES = {
    # The switcher: one's own memberships, of whichever tenant.
    ("membership", "own_memberships"): (
        "SELECT",
        "(user_id = (NULLIF(current_setting('tooltrail.user_id'::text, true), ''::text))::bigint)",
        None,
        "PERMISSIVE",
    ),
    # What the application may delete of the index.
    ("invocation", "absorbed"): ("DELETE", "absorbed", None, "RESTRICTIVE"),
    ("violation", "found_by_server"): (
        "DELETE",
        "(found_by = 'server'::text)",
        None,
        "RESTRICTIVE",
    ),
    ("violation_day", "nothing_left"): ("DELETE", "(violation_count = 0)", None, "RESTRICTIVE"),
    ("trace", "nothing_left"): (
        "DELETE",
        "((started_count = 0) AND (decision_count = 0))",
        None,
        "RESTRICTIVE",
    ),
}
"""Policies beside the tenant's: a permissive one widens what is seen, so each is named here."""

_TENANT_TABLES = """
    SELECT c.oid AS table_oid, c.oid::regclass::text AS name, c.relkind, c.relispartition,
           c.relrowsecurity, c.relforcerowsecurity, a.attnum AS tenant_attnum, a.atttypid,
           a.attnotnull, c.relacl, c.relowner
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
    WHERE c.relkind IN ('r', 'p', 'f')
      AND c.relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')
"""


@dataclass(frozen=True)
class Rule:
    """`query` selects a text for each offender; `tenant_table` holds the tables to look at."""

    name: str
    query: str

    def offenders(self, connection: psycopg.Connection[Any]) -> list[str]:
        """What breaks the rule, in order."""
        rows = connection.execute(
            f"WITH tenant_table AS ({_TENANT_TABLES}) {self.query}",
            {"exempt": list(EXEMPT), "isolation": ISOLATION},
        )
        return sorted(text for (text,) in rows)


def odd_policies(connection: psycopg.Connection[Any]) -> list[str]:
    """Policies that are neither the tenant's nor listed. They are ORed: one too many opens."""
    rows = connection.execute(
        "SELECT tablename, policyname, permissive, roles::text[], cmd, qual, with_check"
        " FROM pg_policies ORDER BY tablename, policyname"
    )
    odd = []
    for table, name, permissive, roles, command, using, check in rows:
        expected = FURTHER_POLICIES.get(
            (table, name),
            ("ALL", ISOLATION, ISOLATION, "PERMISSIVE") if name == "tenant_isolation" else None,
        )
        actual = (command, using, check, permissive)
        if expected != actual or roles != ["public"]:
            odd.append(f"{table}.{name}: {roles} {actual}")
    return odd


RULES = [
    Rule(
        "row-level security is on and binds the owner, too",
        """
        SELECT name FROM tenant_table
        WHERE NOT (relrowsecurity AND relforcerowsecurity) AND NOT name = ANY(%(exempt)s)
        """,
    ),
    Rule(
        "the tenant's policy guards what is read and what is written",
        """
        SELECT name FROM tenant_table
        WHERE NOT relispartition AND NOT name = ANY(%(exempt)s) AND NOT EXISTS (
            SELECT FROM pg_policy p
            WHERE p.polrelid = table_oid AND p.polname = 'tenant_isolation' AND p.polcmd = '*'
              AND p.polpermissive AND p.polroles = '{0}'
              AND pg_get_expr(p.polqual, p.polrelid) = %(isolation)s
              AND pg_get_expr(p.polwithcheck, p.polrelid) = %(isolation)s
        )
        """,
    ),
    Rule(
        "a policy has no subquery, which Citus refuses",
        """
        SELECT name || ': ' || p.polname FROM tenant_table
        JOIN pg_policy p ON p.polrelid = table_oid
        WHERE pg_get_expr(p.polqual, p.polrelid) LIKE '%%SELECT%%'
           OR pg_get_expr(p.polwithcheck, p.polrelid) LIKE '%%SELECT%%'
        """,
    ),
    Rule(
        # A parent's policies are not asked when its partition is named.
        "a partition is closed to everybody but its owner",
        """
        SELECT name FROM tenant_table
        WHERE relispartition AND (
            EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee <> relowner)
            OR EXISTS (SELECT FROM pg_policy WHERE polrelid = table_oid)
        )
        """,
    ),
    Rule(
        "tenant_id is a uuid and never null",
        "SELECT name FROM tenant_table WHERE atttypid <> 'uuid'::regtype OR NOT attnotnull",
    ),
    Rule(
        "there is a primary key",
        """
        SELECT name FROM tenant_table
        WHERE NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = table_oid AND i.indisprimary)
        """,
    ),
    Rule(
        "every key starts with the tenant",
        """
        SELECT name || ': ' || i.indexrelid::regclass FROM tenant_table
        JOIN pg_index i ON i.indrelid = table_oid
        WHERE i.indisunique AND i.indkey[0] <> tenant_attnum
        """,
    ),
    Rule(
        "a reference between tenants' tables stays within the tenant",
        """
        SELECT here.name || ': ' || f.conname FROM pg_constraint f
        JOIN tenant_table here ON here.table_oid = f.conrelid
        JOIN tenant_table there ON there.table_oid = f.confrelid
        WHERE f.contype = 'f' AND NOT EXISTS (
            SELECT FROM unnest(f.conkey, f.confkey) AS pair (here_attnum, there_attnum)
            WHERE here_attnum = here.tenant_attnum AND there_attnum = there.tenant_attnum
        )
        """,
    ),
    Rule(
        "a reference is checked at once, and partitioned tables have none",
        """
        SELECT name || ': ' || f.conname FROM pg_constraint f
        JOIN tenant_table ON table_oid = f.conrelid
        WHERE f.contype = 'f' AND (f.condeferrable OR relkind = 'p' OR relispartition)
        """,
    ),
    Rule(
        "no triggers",
        """
        SELECT name || ': ' || t.tgname FROM pg_trigger t
        JOIN tenant_table ON table_oid = t.tgrelid WHERE NOT t.tgisinternal
        """,
    ),
    Rule(
        "no numbers the database makes up",
        """
        SELECT name || ': ' || a.attname FROM pg_attribute a
        JOIN tenant_table ON table_oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attidentity <> '' OR a.attgenerated <> ''
           OR pg_get_expr(d.adbin, d.adrelid) LIKE '%%nextval%%'
        """,
    ),
    Rule(
        "partitioned by a plain day",
        """
        SELECT name FROM tenant_table
        WHERE relkind = 'p' AND pg_get_partkeydef(table_oid) <> 'RANGE (started_on)'
        """,
    ),
    Rule(
        # It would read with its owner's eyes, and the owner sees every tenant.
        "a view asks as whoever reads it",
        """
        SELECT c.oid::regclass::text FROM pg_class c
        WHERE c.relkind IN ('v', 'm') AND c.relnamespace = 'public'::regnamespace
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
          AND NOT coalesce(c.reloptions, '{}') && '{security_invoker=true,security_invoker=on}'
        """,
    ),
    Rule(
        "no function runs as its owner",
        """
        SELECT p.oid::regprocedure::text FROM pg_proc p
        WHERE p.prosecdef AND p.pronamespace = 'public'::regnamespace
        """,
    ),
    Rule(
        "everything belongs to the owner",
        """
        SELECT c.oid::regclass::text FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
          AND c.relowner <> 'tooltrail_owner'::regrole
        """,
    ),
]
