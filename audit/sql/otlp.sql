-- lock_traces --
-- Lets one request at a time look up and store the spans of these traces, each of which has one
-- of the tenant's locks. They are in order, so that two requests cannot wait for each other.
SELECT count(pg_advisory_xact_lock(hashtextextended(%(tenant_id)s::text, number)))
FROM unnest(%(numbers)b::bigint[]) AS number

-- known_spans --
-- The spans that are stored of a request's: the same ones, those right above and right below
-- them; each with its call. The days are an array, so that partitions are chosen once.
SELECT s.span_uuid, s.parent_uuid, s.invocation_id, s.scope, s.kind, i.tool_name, i.tool_call_id,
       i.started_at, i.end_batch_id, i.end_pos
FROM (
    SELECT span_uuid, parent_uuid, invocation_id, call_on, scope, kind
    FROM otlp_span
    WHERE tenant_id = %(tenant_id)s AND started_on = ANY(%(days)b::date[])
      AND span_uuid = ANY(%(own_and_above)b::uuid[]) AND invocation_id IS NOT NULL
    UNION
    SELECT span_uuid, parent_uuid, invocation_id, call_on, scope, kind
    FROM otlp_span
    WHERE tenant_id = %(tenant_id)s AND started_on = ANY(%(days)b::date[])
      AND parent_uuid = ANY(%(own)b::uuid[]) AND invocation_id IS NOT NULL
) AS s
JOIN invocation i
  ON i.tenant_id = %(tenant_id)s
 AND i.started_on = s.call_on
 AND i.invocation_id = s.invocation_id

-- insert_spans --
-- A request's spans, in order of key. One that is known stays as it is.
INSERT INTO otlp_span (
    tenant_id, started_on, span_uuid, parent_uuid, invocation_id, call_on, scope, kind
)
SELECT %(tenant_id)s, started_on, span_uuid, parent_uuid, invocation_id, call_on, scope, kind
FROM unnest(
    %(started_on)b::date[], %(span_uuid)b::uuid[], %(parent_uuid)b::uuid[],
    %(invocation_id)b::uuid[], %(call_on)b::date[], %(scope)b::text[], %(kind)b::integer[]
) AS u (started_on, span_uuid, parent_uuid, invocation_id, call_on, scope, kind)
ON CONFLICT DO NOTHING

-- calls_above --
-- For spans that are no calls of their own: the nearest call above each, through whatever lies
-- between. Chains end after a hundred steps, as parents may form a ring.
WITH RECURSIVE above AS (
    SELECT asked AS span_uuid, asked AS at, 0 AS steps
    FROM unnest(%(span_uuids)s::uuid[]) AS asked
    UNION ALL
    SELECT above.span_uuid, s.parent_uuid, above.steps + 1
    FROM above
    JOIN otlp_span s
      ON s.tenant_id = %(tenant_id)s
     AND s.started_on = ANY(%(days)s::date[])
     AND s.span_uuid = above.at
     AND s.invocation_id IS NULL
    WHERE s.parent_uuid IS NOT NULL AND above.steps < 100
)
SELECT above.span_uuid, s.invocation_id
FROM above
JOIN otlp_span s
  ON s.tenant_id = %(tenant_id)s
 AND s.started_on = ANY(%(days)s::date[])
 AND s.span_uuid = above.at
 AND s.invocation_id IS NOT NULL
