-- note_differing_invocation --
-- Note the keys of all rows that differ between the index, `public`, and the shadow, `pg_temp`.
CREATE TEMP TABLE differing_invocation AS
SELECT started_on, invocation_id
FROM (
    SELECT * FROM public.invocation
    WHERE tenant_id = %(tenant_id)s AND started_on = ANY(%(days)s)
) AS i
FULL JOIN (
    SELECT * FROM pg_temp.invocation WHERE started_on = ANY(%(days)s)
) AS x USING (started_on, invocation_id)
WHERE ROW(i.*) IS DISTINCT FROM ROW(x.*)

-- show_differing_invocation --
-- The first of these rows, as they are in index and shadow, and how many there are. Both are
-- subqueries, as Citus fetches only columns that are named.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text,
       (SELECT count(*) FROM differing_invocation)
FROM (
    SELECT * FROM differing_invocation
    ORDER BY started_on, invocation_id
    LIMIT %(shown)s
) AS d
LEFT JOIN (SELECT * FROM public.invocation WHERE tenant_id = %(tenant_id)s) AS i
    ON i.started_on = d.started_on
    AND i.invocation_id = d.invocation_id
LEFT JOIN (SELECT * FROM pg_temp.invocation WHERE tenant_id = %(tenant_id)s) AS x
    ON x.started_on = d.started_on
    AND x.invocation_id = d.invocation_id
ORDER BY to_jsonb(d)::text

-- delete_differing_invocation --
-- Delete the noted rows from the index.
DELETE FROM public.invocation AS i
USING differing_invocation AS d
WHERE i.tenant_id = %(tenant_id)s AND i.started_on = d.started_on
  AND i.invocation_id = d.invocation_id

-- insert_differing_invocation --
-- Insert the shadow's rows in their place, where it has them.
INSERT INTO public.invocation
SELECT x.*
FROM pg_temp.invocation AS x
JOIN differing_invocation AS d USING (started_on, invocation_id)
WHERE x.tenant_id = %(tenant_id)s AND x.started_on = ANY(%(days)s)
ON CONFLICT (tenant_id, started_on, invocation_id) DO NOTHING

-- note_differing_decision --
-- As note_differing_invocation, for this table.
CREATE TEMP TABLE differing_decision AS
SELECT started_on, decision_id
FROM (
    SELECT * FROM public.decision
    WHERE tenant_id = %(tenant_id)s AND started_on = ANY(%(days)s)
) AS i
FULL JOIN (
    SELECT * FROM pg_temp.decision WHERE started_on = ANY(%(days)s)
) AS x USING (started_on, decision_id)
WHERE ROW(i.*) IS DISTINCT FROM ROW(x.*)

-- show_differing_decision --
-- As show_differing_invocation, for this table.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text,
       (SELECT count(*) FROM differing_decision)
FROM (
    SELECT * FROM differing_decision
    ORDER BY started_on, decision_id
    LIMIT %(shown)s
) AS d
LEFT JOIN (SELECT * FROM public.decision WHERE tenant_id = %(tenant_id)s) AS i
    ON i.started_on = d.started_on AND i.decision_id = d.decision_id
LEFT JOIN (SELECT * FROM pg_temp.decision WHERE tenant_id = %(tenant_id)s) AS x
    ON x.started_on = d.started_on AND x.decision_id = d.decision_id
ORDER BY to_jsonb(d)::text

-- delete_differing_decision --
-- As delete_differing_invocation, for this table.
DELETE FROM public.decision AS i
USING differing_decision AS d
WHERE i.tenant_id = %(tenant_id)s AND i.started_on = d.started_on AND i.decision_id = d.decision_id

-- insert_differing_decision --
-- As insert_differing_invocation, for this table.
INSERT INTO public.decision
SELECT x.*
FROM pg_temp.decision AS x
JOIN differing_decision AS d USING (started_on, decision_id)
WHERE x.tenant_id = %(tenant_id)s AND x.started_on = ANY(%(days)s)
ON CONFLICT (tenant_id, started_on, decision_id) DO NOTHING

-- note_differing_violation --
-- As note_differing_invocation, for this table.
CREATE TEMP TABLE differing_violation AS
SELECT started_on, invocation_id, ordinal
FROM (
    SELECT * FROM public.violation
    WHERE tenant_id = %(tenant_id)s AND started_on = ANY(%(days)s)
) AS i
FULL JOIN (
    SELECT * FROM pg_temp.violation WHERE started_on = ANY(%(days)s)
) AS x USING (started_on, invocation_id, ordinal)
WHERE ROW(i.*) IS DISTINCT FROM ROW(x.*)

-- show_differing_violation --
-- As show_differing_invocation, for this table.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text,
       (SELECT count(*) FROM differing_violation)
FROM (
    SELECT * FROM differing_violation
    ORDER BY started_on, invocation_id, ordinal
    LIMIT %(shown)s
) AS d
LEFT JOIN (SELECT * FROM public.violation WHERE tenant_id = %(tenant_id)s) AS i
    ON i.started_on = d.started_on
    AND i.invocation_id = d.invocation_id AND i.ordinal = d.ordinal
LEFT JOIN (SELECT * FROM pg_temp.violation WHERE tenant_id = %(tenant_id)s) AS x
    ON x.started_on = d.started_on
    AND x.invocation_id = d.invocation_id AND x.ordinal = d.ordinal
ORDER BY to_jsonb(d)::text

-- delete_differing_violation --
-- As delete_differing_invocation, for this table.
DELETE FROM public.violation AS i
USING differing_violation AS d
WHERE i.tenant_id = %(tenant_id)s AND i.started_on = d.started_on
  AND i.invocation_id = d.invocation_id AND i.ordinal = d.ordinal

-- insert_differing_violation --
-- As insert_differing_invocation, for this table.
INSERT INTO public.violation
SELECT x.*
FROM pg_temp.violation AS x
JOIN differing_violation AS d USING (started_on, invocation_id, ordinal)
WHERE x.tenant_id = %(tenant_id)s AND x.started_on = ANY(%(days)s)
ON CONFLICT (tenant_id, started_on, invocation_id, ordinal) DO NOTHING

-- note_differing_violation_day --
-- As note_differing_invocation, for this table.
CREATE TEMP TABLE differing_violation_day AS
SELECT started_on, kind
FROM (
    SELECT * FROM public.violation_day
    WHERE tenant_id = %(tenant_id)s AND started_on = ANY(%(days)s)
) AS i
FULL JOIN (
    SELECT * FROM pg_temp.violation_day WHERE started_on = ANY(%(days)s)
) AS x USING (started_on, kind)
WHERE ROW(i.*) IS DISTINCT FROM ROW(x.*)

-- show_differing_violation_day --
-- As show_differing_invocation, for this table.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text,
       (SELECT count(*) FROM differing_violation_day)
FROM (
    SELECT * FROM differing_violation_day
    ORDER BY started_on, kind
    LIMIT %(shown)s
) AS d
LEFT JOIN (SELECT * FROM public.violation_day WHERE tenant_id = %(tenant_id)s) AS i
    ON i.started_on = d.started_on AND i.kind = d.kind
LEFT JOIN (SELECT * FROM pg_temp.violation_day WHERE tenant_id = %(tenant_id)s) AS x
    ON x.started_on = d.started_on AND x.kind = d.kind
ORDER BY to_jsonb(d)::text

-- delete_differing_violation_day --
-- As delete_differing_invocation, for this table.
DELETE FROM public.violation_day AS i
USING differing_violation_day AS d
WHERE i.tenant_id = %(tenant_id)s AND i.started_on = d.started_on AND i.kind = d.kind

-- insert_differing_violation_day --
-- As insert_differing_invocation, for this table.
INSERT INTO public.violation_day
SELECT x.*
FROM pg_temp.violation_day AS x
JOIN differing_violation_day AS d USING (started_on, kind)
WHERE x.tenant_id = %(tenant_id)s AND x.started_on = ANY(%(days)s)
ON CONFLICT (tenant_id, started_on, kind) DO NOTHING

-- note_differing_trace --
-- As note_differing_invocation, for this table.
CREATE TEMP TABLE differing_trace AS
SELECT started_on, trace_id
FROM (
    SELECT * FROM public.trace
    WHERE tenant_id = %(tenant_id)s AND started_on = ANY(%(days)s)
) AS i
FULL JOIN (
    SELECT * FROM pg_temp.trace WHERE started_on = ANY(%(days)s)
) AS x USING (started_on, trace_id)
WHERE ROW(i.*) IS DISTINCT FROM ROW(x.*)

-- show_differing_trace --
-- As show_differing_invocation, for this table.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text,
       (SELECT count(*) FROM differing_trace)
FROM (
    SELECT * FROM differing_trace
    ORDER BY started_on, trace_id
    LIMIT %(shown)s
) AS d
LEFT JOIN (SELECT * FROM public.trace WHERE tenant_id = %(tenant_id)s) AS i
    ON i.started_on = d.started_on AND i.trace_id = d.trace_id
LEFT JOIN (SELECT * FROM pg_temp.trace WHERE tenant_id = %(tenant_id)s) AS x
    ON x.started_on = d.started_on AND x.trace_id = d.trace_id
ORDER BY to_jsonb(d)::text

-- delete_differing_trace --
-- As delete_differing_invocation, for this table.
DELETE FROM public.trace AS i
USING differing_trace AS d
WHERE i.tenant_id = %(tenant_id)s AND i.started_on = d.started_on AND i.trace_id = d.trace_id

-- insert_differing_trace --
-- As insert_differing_invocation, for this table.
INSERT INTO public.trace
SELECT x.*
FROM pg_temp.trace AS x
JOIN differing_trace AS d USING (started_on, trace_id)
WHERE x.tenant_id = %(tenant_id)s AND x.started_on = ANY(%(days)s)
ON CONFLICT (tenant_id, started_on, trace_id) DO NOTHING

-- note_differing_quarter_rollup --
-- As note_differing_invocation, for this table. Rows of the index that count no calls are treated
-- as absent.
CREATE TEMP TABLE differing_quarter_rollup AS
SELECT started_on, quarter_at, tool_name, tool_version
FROM (
    SELECT * FROM public.quarter_rollup
    WHERE tenant_id = %(tenant_id)s AND started_on = ANY(%(days)s) AND started_count <> 0
) AS i
FULL JOIN (
    SELECT * FROM pg_temp.quarter_rollup WHERE started_on = ANY(%(days)s)
) AS x USING (started_on, quarter_at, tool_name, tool_version)
WHERE ROW(i.*) IS DISTINCT FROM ROW(x.*)

-- show_differing_quarter_rollup --
-- As show_differing_invocation, for this table.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text,
       (SELECT count(*) FROM differing_quarter_rollup)
FROM (
    SELECT * FROM differing_quarter_rollup
    ORDER BY started_on, quarter_at, tool_name, tool_version
    LIMIT %(shown)s
) AS d
LEFT JOIN (SELECT * FROM public.quarter_rollup WHERE tenant_id = %(tenant_id)s) AS i
    ON i.started_on = d.started_on
    AND i.quarter_at = d.quarter_at AND i.tool_name = d.tool_name
    AND i.tool_version = d.tool_version
LEFT JOIN (SELECT * FROM pg_temp.quarter_rollup WHERE tenant_id = %(tenant_id)s) AS x
    ON x.started_on = d.started_on
    AND x.quarter_at = d.quarter_at AND x.tool_name = d.tool_name
    AND x.tool_version = d.tool_version
ORDER BY to_jsonb(d)::text

-- delete_differing_quarter_rollup --
-- As delete_differing_invocation, for this table.
DELETE FROM public.quarter_rollup AS i
USING differing_quarter_rollup AS d
WHERE i.tenant_id = %(tenant_id)s AND i.started_on = d.started_on
  AND i.quarter_at = d.quarter_at AND i.tool_name = d.tool_name
  AND i.tool_version = d.tool_version

-- insert_differing_quarter_rollup --
-- As insert_differing_invocation, for this table.
INSERT INTO public.quarter_rollup
SELECT x.*
FROM pg_temp.quarter_rollup AS x
JOIN differing_quarter_rollup AS d USING (started_on, quarter_at, tool_name, tool_version)
WHERE x.tenant_id = %(tenant_id)s AND x.started_on = ANY(%(days)s)
ON CONFLICT (tenant_id, started_on, quarter_at, tool_name, tool_version) DO NOTHING

-- note_differing_rollup --
-- As note_differing_invocation, for this table. Rows of the index that count no calls are treated
-- as absent.
CREATE TEMP TABLE differing_rollup AS
SELECT started_on, hour_at, tool_name, tool_version
FROM (
    SELECT * FROM public.rollup
    WHERE tenant_id = %(tenant_id)s AND started_on = ANY(%(days)s) AND started_count <> 0
) AS i
FULL JOIN (
    SELECT * FROM pg_temp.rollup WHERE started_on = ANY(%(days)s)
) AS x USING (started_on, hour_at, tool_name, tool_version)
WHERE ROW(i.*) IS DISTINCT FROM ROW(x.*)

-- show_differing_rollup --
-- As show_differing_invocation, for this table.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text,
       (SELECT count(*) FROM differing_rollup)
FROM (
    SELECT * FROM differing_rollup
    ORDER BY started_on, hour_at, tool_name, tool_version
    LIMIT %(shown)s
) AS d
LEFT JOIN (SELECT * FROM public.rollup WHERE tenant_id = %(tenant_id)s) AS i
    ON i.started_on = d.started_on AND i.hour_at = d.hour_at
    AND i.tool_name = d.tool_name AND i.tool_version = d.tool_version
LEFT JOIN (SELECT * FROM pg_temp.rollup WHERE tenant_id = %(tenant_id)s) AS x
    ON x.started_on = d.started_on AND x.hour_at = d.hour_at
    AND x.tool_name = d.tool_name AND x.tool_version = d.tool_version
ORDER BY to_jsonb(d)::text

-- delete_differing_rollup --
-- As delete_differing_invocation, for this table.
DELETE FROM public.rollup AS i
USING differing_rollup AS d
WHERE i.tenant_id = %(tenant_id)s AND i.started_on = d.started_on AND i.hour_at = d.hour_at
  AND i.tool_name = d.tool_name AND i.tool_version = d.tool_version

-- insert_differing_rollup --
-- As insert_differing_invocation, for this table.
INSERT INTO public.rollup
SELECT x.*
FROM pg_temp.rollup AS x
JOIN differing_rollup AS d USING (started_on, hour_at, tool_name, tool_version)
WHERE x.tenant_id = %(tenant_id)s AND x.started_on = ANY(%(days)s)
ON CONFLICT (tenant_id, started_on, hour_at, tool_name, tool_version) DO NOTHING

-- note_differing_error_rollup --
-- As note_differing_invocation, for this table. Rows of the index that count no calls are treated
-- as absent.
CREATE TEMP TABLE differing_error_rollup AS
SELECT started_on, hour_at, tool_name, tool_version, error_type
FROM (
    SELECT * FROM public.error_rollup
    WHERE tenant_id = %(tenant_id)s AND started_on = ANY(%(days)s) AND call_count <> 0
) AS i
FULL JOIN (
    SELECT * FROM pg_temp.error_rollup WHERE started_on = ANY(%(days)s)
) AS x USING (started_on, hour_at, tool_name, tool_version, error_type)
WHERE ROW(i.*) IS DISTINCT FROM ROW(x.*)

-- show_differing_error_rollup --
-- As show_differing_invocation, for this table.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text,
       (SELECT count(*) FROM differing_error_rollup)
FROM (
    SELECT * FROM differing_error_rollup
    ORDER BY started_on, hour_at, tool_name, tool_version, error_type
    LIMIT %(shown)s
) AS d
LEFT JOIN (SELECT * FROM public.error_rollup WHERE tenant_id = %(tenant_id)s) AS i
    ON i.started_on = d.started_on AND i.hour_at = d.hour_at
    AND i.tool_name = d.tool_name AND i.tool_version = d.tool_version
    AND i.error_type = d.error_type
LEFT JOIN (SELECT * FROM pg_temp.error_rollup WHERE tenant_id = %(tenant_id)s) AS x
    ON x.started_on = d.started_on AND x.hour_at = d.hour_at
    AND x.tool_name = d.tool_name AND x.tool_version = d.tool_version
    AND x.error_type = d.error_type
ORDER BY to_jsonb(d)::text

-- delete_differing_error_rollup --
-- As delete_differing_invocation, for this table.
DELETE FROM public.error_rollup AS i
USING differing_error_rollup AS d
WHERE i.tenant_id = %(tenant_id)s AND i.started_on = d.started_on AND i.hour_at = d.hour_at
  AND i.tool_name = d.tool_name AND i.tool_version = d.tool_version
  AND i.error_type = d.error_type

-- insert_differing_error_rollup --
-- As insert_differing_invocation, for this table.
INSERT INTO public.error_rollup
SELECT x.*
FROM pg_temp.error_rollup AS x
JOIN differing_error_rollup AS d USING (started_on, hour_at, tool_name, tool_version, error_type)
WHERE x.tenant_id = %(tenant_id)s AND x.started_on = ANY(%(days)s)
ON CONFLICT (tenant_id, started_on, hour_at, tool_name, tool_version, error_type) DO NOTHING

-- note_differing_producer --
-- As note_differing_invocation, for this table.
CREATE TEMP TABLE differing_producer AS
SELECT producer_id
FROM (
    SELECT * FROM public.producer
    WHERE tenant_id = %(tenant_id)s
) AS i
FULL JOIN pg_temp.producer AS x USING (producer_id)
WHERE ROW(i.*) IS DISTINCT FROM ROW(x.*)

-- show_differing_producer --
-- As show_differing_invocation, for this table.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text,
       (SELECT count(*) FROM differing_producer)
FROM (
    SELECT * FROM differing_producer
    ORDER BY producer_id
    LIMIT %(shown)s
) AS d
LEFT JOIN (SELECT * FROM public.producer WHERE tenant_id = %(tenant_id)s) AS i
    ON i.producer_id = d.producer_id
LEFT JOIN (SELECT * FROM pg_temp.producer WHERE tenant_id = %(tenant_id)s) AS x
    ON x.producer_id = d.producer_id
ORDER BY to_jsonb(d)::text

-- delete_differing_producer --
-- As delete_differing_invocation, for this table.
DELETE FROM public.producer AS i
USING differing_producer AS d
WHERE i.tenant_id = %(tenant_id)s AND i.producer_id = d.producer_id

-- insert_differing_producer --
-- As insert_differing_invocation, for this table.
INSERT INTO public.producer
SELECT x.*
FROM pg_temp.producer AS x
JOIN differing_producer AS d USING (producer_id)
WHERE x.tenant_id = %(tenant_id)s
ON CONFLICT (tenant_id, producer_id) DO NOTHING

-- note_differing_gap --
-- As note_differing_invocation, for this table.
CREATE TEMP TABLE differing_gap AS
SELECT producer_id, from_seq, to_seq
FROM (
    SELECT * FROM public.gap
    WHERE tenant_id = %(tenant_id)s
) AS i
FULL JOIN pg_temp.gap AS x USING (producer_id, from_seq, to_seq)
WHERE ROW(i.*) IS DISTINCT FROM ROW(x.*)

-- show_differing_gap --
-- As show_differing_invocation, for this table.
SELECT to_jsonb(d)::text, to_jsonb(i)::text, to_jsonb(x)::text,
       (SELECT count(*) FROM differing_gap)
FROM (
    SELECT * FROM differing_gap
    ORDER BY producer_id, from_seq, to_seq
    LIMIT %(shown)s
) AS d
LEFT JOIN (SELECT * FROM public.gap WHERE tenant_id = %(tenant_id)s) AS i
    ON i.producer_id = d.producer_id AND i.from_seq = d.from_seq
    AND i.to_seq = d.to_seq
LEFT JOIN (SELECT * FROM pg_temp.gap WHERE tenant_id = %(tenant_id)s) AS x
    ON x.producer_id = d.producer_id AND x.from_seq = d.from_seq
    AND x.to_seq = d.to_seq
ORDER BY to_jsonb(d)::text

-- delete_differing_gap --
-- As delete_differing_invocation, for this table.
DELETE FROM public.gap AS i
USING differing_gap AS d
WHERE i.tenant_id = %(tenant_id)s AND i.producer_id = d.producer_id AND i.from_seq = d.from_seq
  AND i.to_seq = d.to_seq

-- insert_differing_gap --
-- As insert_differing_invocation, for this table.
INSERT INTO public.gap
SELECT x.*
FROM pg_temp.gap AS x
JOIN differing_gap AS d USING (producer_id, from_seq, to_seq)
WHERE x.tenant_id = %(tenant_id)s
ON CONFLICT (tenant_id, producer_id, from_seq, to_seq) DO NOTHING
