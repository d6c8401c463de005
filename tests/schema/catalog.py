"""All that PostgreSQL knows of a database's schema, as lines of text: two databases are compared.

Of `public` alone, and without what no migration decides: object ids. Without the order of columns,
too: a step adds its columns at the end, and the files of new databases have them where they belong.
"""

from django.db import connections

_OURS = "n.nspname = 'public'"
_GRANT = (
    "coalesce(grantee::regrole::text, '') || ' ' || privilege_type"
    " || CASE WHEN is_grantable THEN ' with grant' ELSE '' END"
)

QUERIES = {
    "relations": f"""
        SELECT c.relname, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity,
               c.relreplident, c.relispartition, c.reloptions, c.relowner::regrole, am.amname,
               pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid),
               CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_am am ON am.oid = c.relam
        WHERE {_OURS}
    """,
    "columns": f"""
        SELECT c.relname, a.attname,
               format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
               a.attstorage, a.attcompression, a.attstattarget, a.attoptions,
               a.attcollation::regcollation, pg_get_expr(d.adbin, d.adrelid)
        FROM pg_attribute a
        JOIN pg_class c ON c.oid = a.attrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE {_OURS} AND a.attnum > 0 AND NOT a.attisdropped
    """,
    "constraints": f"""
        SELECT coalesce(c.relname, ''),
               -- A column that is renamed keeps the name of its NOT NULL.
               CASE WHEN o.contype <> 'n' THEN o.conname END,
               o.contype, o.condeferrable, o.condeferred,
               o.convalidated, o.connoinherit, pg_get_constraintdef(o.oid)
        FROM pg_constraint o
        JOIN pg_namespace n ON n.oid = o.connamespace
        LEFT JOIN pg_class c ON c.oid = o.conrelid
        WHERE {_OURS}
    """,
    "indexes": f"""
        SELECT c.relname, pg_get_indexdef(i.indexrelid), i.indisprimary, i.indisunique,
               i.indisvalid, i.indisready, i.indisclustered, i.indisreplident, i.indimmediate
        FROM pg_index i
        JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {_OURS}
    """,
    "policies": """
        SELECT tablename, policyname, permissive, roles, cmd, qual, with_check
        FROM pg_policies
        WHERE schemaname = 'public'
    """,
    "functions": f"""
        SELECT p.oid::regprocedure, pg_get_functiondef(p.oid), p.proowner::regrole
        FROM pg_proc p
        JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE {_OURS} AND p.prokind <> 'a'
    """,
    "triggers": f"""
        SELECT c.relname, t.tgname, pg_get_triggerdef(t.oid), t.tgenabled
        FROM pg_trigger t
        JOIN pg_class c ON c.oid = t.tgrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {_OURS} AND NOT t.tgisinternal
    """,
    "sequences": f"""
        SELECT c.relname, format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmax,
               s.seqmin, s.seqcache, s.seqcycle, d.refobjid::regclass, a.attname
        FROM pg_sequence s
        JOIN pg_class c ON c.oid = s.seqrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_depend d ON d.objid = c.oid AND d.classid = 'pg_class'::regclass
            AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
        LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
        WHERE {_OURS}
    """,
    "types": f"""
        SELECT t.typname, t.typtype, format_type(t.typbasetype, t.typtypmod), t.typowner::regrole,
               (SELECT array_agg(e.enumlabel ORDER BY e.enumsortorder)
                FROM pg_enum e WHERE e.enumtypid = t.oid)
        FROM pg_type t
        JOIN pg_namespace n ON n.oid = t.typnamespace
        WHERE {_OURS}
    """,
    "grants on relations": f"""
        SELECT c.relname, {_GRANT}
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl)
        WHERE {_OURS}
    """,
    "grants on columns": f"""
        SELECT c.relname, a.attname, {_GRANT}
        FROM pg_attribute a
        JOIN pg_class c ON c.oid = a.attrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(a.attacl)
        WHERE {_OURS}
    """,
    "grants on functions": f"""
        SELECT p.oid::regprocedure, {_GRANT}
        FROM pg_proc p
        JOIN pg_namespace n ON n.oid = p.pronamespace, aclexplode(p.proacl)
        WHERE {_OURS}
    """,
    "default grants": f"""
        SELECT d.defaclrole::regrole, d.defaclobjtype, {_GRANT}
        FROM pg_default_acl d, aclexplode(d.defaclacl)
    """,
    "comments": f"""
        SELECT c.relname, o.objsubid, o.description
        FROM pg_description o
        JOIN pg_class c ON c.oid = o.objoid AND o.classoid = 'pg_class'::regclass
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {_OURS}
    """,
    "inheritance": f"""
        SELECT i.inhrelid::regclass, i.inhparent::regclass, i.inhseqno
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {_OURS}
    """,
    "statistics": "SELECT stxname, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext",
    "rules": "SELECT tablename, rulename, definition FROM pg_rules WHERE schemaname = 'public'",
    "extensions": "SELECT extname, extversion FROM pg_extension",
    "schemas": "SELECT nspname, nspowner::regrole, nspacl FROM pg_namespace WHERE nspname !~ '^pg'",
}
"""By what they answer with. None asks for an object id."""


def schema_of(alias: str) -> dict[str, list[str]]:
    """The answers of one database, sorted: equal if and only if the schemas are."""
    with connections[alias].cursor() as cursor:
        answers = {}
        for name, query in QUERIES.items():
            cursor.execute(f"SELECT answer::text FROM ({query}) AS answer")
            answers[name] = sorted(text for (text,) in cursor.fetchall())
        return answers
