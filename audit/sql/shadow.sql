-- note_differing --
-- The keys of all rows that are not the same in index and shadow. For each table in turn: the
-- names in braces are filled in by audit/index/shadow.py.
CREATE TEMP TABLE differing_{table} AS
SELECT {key}
FROM (
    SELECT x.* FROM public.{table} AS x WHERE x.tenant_id = %(tenant_id)s AND {within} AND {counts}
) AS i
FULL JOIN (SELECT x.* FROM pg_temp.{table} AS x WHERE {within}) AS x USING ({key})
WHERE ROW({index_columns}) IS DISTINCT FROM ROW({log_columns})

-- show_differing --
-- The first of them, as index and shadow have them.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text
FROM (SELECT * FROM differing_{table} ORDER BY {key} LIMIT %(shown)s) AS d
LEFT JOIN public.{table} AS i ON i.tenant_id = %(tenant_id)s AND {same_in_index}
LEFT JOIN pg_temp.{table} AS x ON x.tenant_id = %(tenant_id)s AND {same_in_log}
ORDER BY to_jsonb(d)::text

-- delete_differing --
-- Of the index, the rows that were noted.
DELETE FROM public.{table} AS i
USING differing_{table} AS d
WHERE i.tenant_id = %(tenant_id)s AND {same_in_index}

-- insert_differing --
-- In their place the shadow's, where it has any.
INSERT INTO public.{table}
SELECT x.*
FROM pg_temp.{table} AS x
JOIN differing_{table} AS d ON {same_in_log}
WHERE x.tenant_id = %(tenant_id)s AND {within}
ON CONFLICT (tenant_id, {key}) DO NOTHING
