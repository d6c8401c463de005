-- lock_traces --
-- Only one request at a time looks up and stores the spans of these traces. Each trace has one of
-- the tenant's locks. The locks are taken in order, so that two requests cannot deadlock.
SELECT count(pg_advisory_xact_lock(hashtextextended(%(tenant_id)s::text, number)))
FROM unnest(%(numbers)b::bigint[]) AS number

-- known_spans --
-- The stored tool spans of one day that concern a request's spans: the same ones, their parents,
-- their children, and those beside them with the same call id. Queried as ranges of one value,
-- in order: a plan that is made for an empty partition and kept must use the only index that can
-- serve this (see calls_on_day).
SELECT s.*
FROM unnest(%(spans)b::uuid[]) AS u (span_uuid)
CROSS JOIN LATERAL (
    SELECT span_uuid, parent_uuid, invocation_id, call_started_at, tool_name, tool_call_id, scope,
           kind
    FROM otlp_span
    WHERE tenant_id = %(tenant_id)s AND started_on = date '1970-01-01' + %(day)b::integer
      AND span_uuid >= u.span_uuid AND span_uuid <= u.span_uuid
    ORDER BY span_uuid
    LIMIT 1
) AS s
WHERE s.invocation_id IS NOT NULL
UNION ALL
SELECT s.*
FROM unnest(%(parents)b::uuid[]) AS u (parent_uuid)
CROSS JOIN LATERAL (
    SELECT span_uuid, parent_uuid, invocation_id, call_started_at, tool_name, tool_call_id, scope,
           kind
    FROM otlp_span
    WHERE tenant_id = %(tenant_id)s AND started_on = date '1970-01-01' + %(day)b::integer
      AND invocation_id IS NOT NULL
      AND parent_uuid >= u.parent_uuid AND parent_uuid <= u.parent_uuid
    ORDER BY parent_uuid DESC, tool_call_id DESC  -- first those without an id of a call
    LIMIT 100
) AS s
UNION ALL
SELECT s.*
FROM unnest(%(parents_beside)b::uuid[], %(ids_beside)b::text[]) AS u (parent_uuid, tool_call_id)
CROSS JOIN LATERAL (
    SELECT span_uuid, parent_uuid, invocation_id, call_started_at, tool_name, tool_call_id, scope,
           kind
    FROM otlp_span
    WHERE tenant_id = %(tenant_id)s AND started_on = date '1970-01-01' + %(day)b::integer
      AND invocation_id IS NOT NULL
      AND (parent_uuid, tool_call_id) >= (u.parent_uuid, u.tool_call_id)
      AND (parent_uuid, tool_call_id) <= (u.parent_uuid, u.tool_call_id)
    ORDER BY parent_uuid, tool_call_id
    LIMIT 100
) AS s

-- traces_with_calls --
-- Those of these traces that have calls or decisions on these days (true), and those of the telling
-- ones that have answers of models (false).
SELECT DISTINCT wanted.trace_id, true
FROM unnest(%(trace_ids)b::text[]) AS wanted (trace_id)
CROSS JOIN unnest(%(days)b::date[]) AS day
CROSS JOIN LATERAL (
    SELECT 1
    FROM trace t
    WHERE t.tenant_id = %(tenant_id)s
      AND t.started_on = day AND t.started_on = ANY(%(days)b::date[])
      AND t.trace_id >= wanted.trace_id AND t.trace_id <= wanted.trace_id
    ORDER BY t.trace_id
    LIMIT 1
) AS found
UNION ALL
SELECT telling.trace_id, false
FROM unnest(%(telling)b::text[]) AS telling (trace_id)
CROSS JOIN LATERAL (
    SELECT 1
    FROM llm_usage u
    WHERE u.tenant_id = %(tenant_id)s
      AND u.trace_id >= telling.trace_id AND u.trace_id <= telling.trace_id
    ORDER BY u.trace_id
    LIMIT 1
) AS found

-- calls_below --
-- The stored spans of tools below these spans, through any others, the nearest first. Parents may
-- form a cycle, which UNION ends. Queried as ranges of one value (see known_spans).
WITH RECURSIVE below AS (
    SELECT span_uuid FROM unnest(%(span_uuids)b::uuid[]) AS span_uuid
    UNION
    SELECT s.span_uuid
    FROM below
    CROSS JOIN unnest(%(days)b::date[]) AS day
    CROSS JOIN LATERAL (
        SELECT o.span_uuid
        FROM otlp_span o
        WHERE o.tenant_id = %(tenant_id)s
          AND o.started_on = day AND o.started_on = ANY(%(days)b::date[])
          AND o.parent_uuid >= below.span_uuid AND o.parent_uuid <= below.span_uuid
        ORDER BY o.parent_uuid
        LIMIT %(row_limit)b::integer
    ) AS s
)
SELECT s.*
FROM (SELECT span_uuid FROM below LIMIT %(row_limit)b::integer) AS found
CROSS JOIN unnest(%(days)b::date[]) AS day
CROSS JOIN LATERAL (
    SELECT o.span_uuid, o.parent_uuid, o.invocation_id, o.call_started_at, o.tool_name,
           o.tool_call_id, o.scope, o.kind
    FROM otlp_span o
    WHERE o.tenant_id = %(tenant_id)s
      AND o.started_on = day AND o.started_on = ANY(%(days)b::date[])
      AND o.span_uuid >= found.span_uuid AND o.span_uuid <= found.span_uuid
    ORDER BY o.span_uuid
    LIMIT 1
) AS s
WHERE s.invocation_id IS NOT NULL

-- spans_above --
-- These stored spans and those above them, with what they say of agent, conversation and model.
-- Chains end after a hundred steps, as parents may form a cycle. Queried as calls_above.
WITH RECURSIVE above AS (
    SELECT span_uuid AS at, 0 AS steps FROM unnest(%(span_uuids)b::uuid[]) AS span_uuid
    UNION
    SELECT s.parent_uuid, above.steps + 1
    FROM above
    CROSS JOIN unnest(%(days)b::date[]) AS day
    CROSS JOIN LATERAL (
        SELECT o.parent_uuid
        FROM otlp_span o
        WHERE o.tenant_id = %(tenant_id)s
          AND o.started_on = day AND o.started_on = ANY(%(days)b::date[])
          AND o.span_uuid >= above.at AND o.span_uuid <= above.at
        ORDER BY o.span_uuid
        LIMIT 1
    ) AS s
    WHERE s.parent_uuid IS NOT NULL AND above.steps < 100
)
SELECT DISTINCT s.*
FROM above
CROSS JOIN unnest(%(days)b::date[]) AS day
CROSS JOIN LATERAL (
    SELECT o.span_uuid, o.parent_uuid, o.invocation_id, o.context
    FROM otlp_span o
    WHERE o.tenant_id = %(tenant_id)s
      AND o.started_on = day AND o.started_on = ANY(%(days)b::date[])
      AND o.span_uuid >= above.at AND o.span_uuid <= above.at
    ORDER BY o.span_uuid
    LIMIT 1
) AS s

-- insert_spans --
-- A request's spans, in order of key. Spans that are already stored stay unchanged.
INSERT INTO otlp_span (
    tenant_id, started_on, span_uuid, parent_uuid, invocation_id, call_started_at, tool_name,
    tool_call_id, scope, kind, context
)
SELECT %(tenant_id)s, started_on, span_uuid, parent_uuid, invocation_id, call_started_at,
       tool_name, tool_call_id, scope, kind, context
FROM unnest(
    %(started_on)b::date[], %(span_uuid)b::uuid[], %(parent_uuid)b::uuid[],
    %(invocation_id)b::uuid[], %(call_started_at)b::timestamptz[], %(tool_name)b::text[],
    %(tool_call_id)b::text[], %(scope)b::text[], %(kind)b::integer[], %(context)b::text[]
) AS u (
    started_on, span_uuid, parent_uuid, invocation_id, call_started_at, tool_name, tool_call_id,
    scope, kind, context
)
ON CONFLICT DO NOTHING

-- move_spans --
-- Spans of stored calls that turned out to be one call: assign them to the first of these calls. A
-- call without any span left may then be withdrawn (withdraw_calls).
UPDATE otlp_span AS s SET invocation_id = u.invocation_id, call_started_at = u.call_started_at
FROM unnest(
    %(started_on)b::date[], %(span_uuid)b::uuid[], %(invocation_id)b::uuid[],
    %(call_started_at)b::timestamptz[]
) AS u (started_on, span_uuid, invocation_id, call_started_at)
WHERE s.tenant_id = %(tenant_id)s
  AND s.started_on = u.started_on
  AND s.span_uuid = u.span_uuid
  AND s.invocation_id <> u.invocation_id

-- call_of_span --
-- The call that contains a span which was once a call itself. The address of that call's page stays
-- valid.
SELECT (call_started_at AT TIME ZONE 'UTC')::date, invocation_id
FROM otlp_span
WHERE tenant_id = %(tenant_id)s
  AND started_on = %(started_on)s
  AND span_uuid = %(span_uuid)s
  AND invocation_id <> span_uuid

-- any_span --
-- Whether a tenant has spans on some days. Without any, no call is below a span, and the statement
-- below takes 12 ms to find that of 1,000 calls.
SELECT EXISTS (
    SELECT FROM otlp_span
    WHERE tenant_id = %(tenant_id)s
      AND started_on = ANY(%(days)s::date[])
)

-- calls_above --
-- The nearest call above each span that is not a call itself, through any spans between. For calls
-- that executors reported, the search starts at the span each ran in, and passes through all spans
-- of the same tool's call, as they report this same call. Chains end after a hundred steps, as
-- parents may form a cycle. Queried as ranges of one value (see known_spans). The day is compared
-- twice, the second time only for the planner.
WITH RECURSIVE above AS (
    (
        SELECT span_uuid AS id, span_uuid AS at, NULL::uuid AS own, NULL::text AS tool_name,
               0 AS steps
        FROM unnest(%(span_uuids)s::uuid[]) AS span_uuid
        UNION ALL
        SELECT call.id, layer.parent_uuid, call.id, layer.tool_name, 0
        FROM unnest(%(call_ids)s::uuid[], %(call_days)s::date[]) AS call (id, day)
        CROSS JOIN LATERAL (
            SELECT s.parent_uuid, s.tool_name, s.kind
            FROM otlp_span s
            WHERE s.tenant_id = %(tenant_id)s
              AND s.started_on = call.day AND s.started_on = ANY(%(days)s::date[])
              AND s.span_uuid >= call.id AND s.span_uuid <= call.id
            ORDER BY s.span_uuid
            LIMIT 1
        ) AS layer
        WHERE layer.kind = -1
    )
    UNION ALL
    SELECT above.id, s.parent_uuid, coalesce(s.invocation_id, above.own), NULL, above.steps + 1
    FROM above
    CROSS JOIN unnest(%(days)s::date[]) AS day
    CROSS JOIN LATERAL (
        SELECT s.parent_uuid, s.invocation_id, s.tool_name
        FROM otlp_span s
        WHERE s.tenant_id = %(tenant_id)s
          AND s.started_on = day AND s.started_on = ANY(%(days)s::date[])
          AND s.span_uuid >= above.at AND s.span_uuid <= above.at
        ORDER BY s.span_uuid
        LIMIT 1
    ) AS s
    WHERE s.parent_uuid IS NOT NULL
      AND above.steps < 100
      AND (
          s.invocation_id IS NULL
          OR s.invocation_id = above.own
          OR s.tool_name = above.tool_name
      )
)
SELECT above.id, s.invocation_id
FROM above
CROSS JOIN unnest(%(days)s::date[]) AS day
CROSS JOIN LATERAL (
    SELECT s.invocation_id, s.tool_name
    FROM otlp_span s
    WHERE s.tenant_id = %(tenant_id)s
      AND s.started_on = day AND s.started_on = ANY(%(days)s::date[])
      AND s.span_uuid >= above.at AND s.span_uuid <= above.at
    ORDER BY s.span_uuid
    LIMIT 1
) AS s
WHERE s.invocation_id IS NOT NULL
  AND s.invocation_id IS DISTINCT FROM above.own
  AND s.tool_name IS DISTINCT FROM above.tool_name

-- calls_of_spans --
-- The next calls that were made of spans, in order of key.
SELECT i.started_on - date '1970-01-01', i.invocation_id, i.started_at, i.trace_id
FROM invocation i
JOIN otlp_span s
  ON s.tenant_id = i.tenant_id
 AND s.started_on = i.started_on
 AND s.span_uuid = i.invocation_id
WHERE i.tenant_id = %(tenant_id)s
  AND s.kind <> -1
  AND (i.started_on, i.invocation_id)
      > (date '1970-01-01' + %(day)b::integer, %(invocation_id)b::uuid)
ORDER BY i.started_on, i.invocation_id
LIMIT %(row_limit)b::integer

-- count_calls_of_spans --
-- How many calls were made of spans. A merged call's row has another id.
SELECT count(*)
FROM otlp_span s
WHERE s.tenant_id = %(tenant_id)s AND s.kind <> -1 AND s.invocation_id = s.span_uuid

-- insert_llm_usage --
-- The tokens of answers, in order of key. What is already stored stays.
INSERT INTO llm_usage (
    tenant_id, started_on, span_uuid, started_at, trace_id, provider, model, agent, agent_version,
    run_id, input_tokens, cached_tokens, written_tokens, output_tokens, is_inner
)
SELECT %(tenant_id)s, u.*, false
FROM unnest(
    %(started_on)b::date[], %(span_uuid)b::uuid[], %(started_at)b::timestamptz[],
    %(trace_id)b::text[], %(provider)b::text[], %(model)b::text[], %(agent)b::text[],
    %(agent_version)b::text[], %(run_id)b::text[], %(input_tokens)b::bigint[],
    %(cached_tokens)b::bigint[], %(written_tokens)b::bigint[], %(output_tokens)b::bigint[]
) AS u
ON CONFLICT DO NOTHING

-- llm_usage_of_traces --
-- The newest answers of these traces. The newest first.
SELECT started_at, started_on - date '1970-01-01', span_uuid, agent, agent_version, run_id, is_inner
FROM llm_usage
WHERE tenant_id = %(tenant_id)s AND trace_id = ANY(%(trace_ids)b::text[])
ORDER BY started_at DESC
LIMIT %(row_limit)b::integer

-- tell_llm_usage --
-- What spans above stored answers say.
UPDATE llm_usage AS s
SET agent = u.agent, agent_version = u.agent_version, run_id = u.run_id, is_inner = u.is_inner
FROM unnest(
    %(started_on)b::date[], %(span_uuid)b::uuid[], %(agent)b::text[], %(agent_version)b::text[],
    %(run_id)b::text[], %(is_inner)b::boolean[]
) AS u (started_on, span_uuid, agent, agent_version, run_id, is_inner)
WHERE s.tenant_id = %(tenant_id)s
  AND s.started_on = u.started_on
  AND s.span_uuid = u.span_uuid
