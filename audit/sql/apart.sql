-- {{property_columns}} --
-- The properties of a call as texts, in the order of `audit.queries.properties`, and last the part
-- of the range in which it started.
tool_name, tool_version, agent, agent_version, model, provider, service, environment, principal,
           mcp_server, mcp_client, mcp_protocol, producer_id, collection_id, workflow_id, state, error_type, error_code, upstream_status::text,
           CASE WHEN violation_count > 0 THEN '*' END,
           CASE cache_hit WHEN TRUE THEN 'hit' WHEN FALSE THEN 'miss' END,
           CASE WHEN attempt > 1 THEN 'retry' WHEN attempt = 1 THEN 'first' END,
           width_bucket(duration_us, %(durations_us)s::bigint[])::text, run_id, trace_id,
           (width_bucket(started_at, %(bounds)s::timestamptz[]) - 1)::text

-- apart_population --
-- About how many calls started in a range, failed, and violate their schema: the whole hours or, of
-- a short range, the quarters that it touches.
SELECT coalesce(sum(started_count), 0)::bigint, coalesce(sum(failed_count), 0)::bigint,
       coalesce(sum(violating_call_count), 0)::bigint
FROM (
    SELECT started_count, failed_count, violating_call_count
    FROM rollup
    WHERE tenant_id = %(tenant_id)s
      AND NOT %(by_quarter)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND hour_at > %(start)s::timestamptz - interval '1 hour'
      AND hour_at < %(end)s
      AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
    UNION ALL
    SELECT started_count, failed_count, violating_call_count
    FROM quarter_rollup
    WHERE tenant_id = %(tenant_id)s
      AND %(by_quarter)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND quarter_at > %(start)s::timestamptz - interval '15 minutes'
      AND quarter_at < %(end)s
      AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
) AS cells

-- {{compared_calls}} --
-- The calls of a query, read in short windows evenly over its time, and if wanted those that do not
-- match. Each window is read in full, so that each call is read with the same probability, and along
-- an index because of LIMIT ALL; its days choose the partition.
(
    SELECT *, {{call_matches}} IS TRUE AS is_match
    FROM (
        SELECT invocation.*
        FROM unnest(%(places)s::timestamptz[]) AS place (from_at)
        CROSS JOIN LATERAL (
            SELECT *
            FROM invocation
            WHERE {{call_walk}}
              AND started_at >= place.from_at
              AND started_at < place.from_at + %(width)s
              AND started_on >= (place.from_at AT TIME ZONE 'UTC')::date
              AND started_on <= ((place.from_at + %(width)s) AT TIME ZONE 'UTC')::date
            LIMIT ALL
        ) AS invocation
        LIMIT %(call_limit)s
    ) AS call
) AS compared
WHERE (is_match OR %(with_others)s)

-- apart_sample --
-- Such calls with what they are compared by.
SELECT is_match, CASE WHEN end_batch_id IS NOT NULL THEN duration_us END,
       prompt_tokens::float8 + completion_tokens, {{property_columns}}
FROM {{compared_calls}}

-- apart_places --
-- Such calls with the places of their start events in the log.
SELECT is_match, trace_id, started_on, invocation_id, start_batch_id, start_pos
FROM {{compared_calls}}
  AND start_batch_id IS NOT NULL
