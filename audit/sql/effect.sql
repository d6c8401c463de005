-- {{effect_side}} --
-- The side a call belongs to: the version in question, the version before it, no reported version,
-- or another one.
CASE WHEN tool_version = ANY(%(after)s) THEN 'after'
     WHEN tool_version = ANY(%(before)s) THEN 'before'
     WHEN tool_version = '' THEN 'unnamed'
     ELSE 'other'
END

-- effect_of_version --
-- A tool's completed calls by slot and side, with histograms of their durations, as in
-- over_time.sql: histograms of whole hours and quarters are numbers, those of moved calls are
-- buckets with their counts.
SELECT slot, NULL::integer AS taken_from, side, sum(completed_count)::bigint,
       sum(failed_count)::bigint, sum(violating_call_count)::bigint,
       sum(histogram)::text AS histogram, NULL::integer[] AS buckets, NULL::bigint[] AS bucket_calls
FROM (
    SELECT {{hour_slot}} AS slot, {{effect_side}} AS side, completed_count, failed_count,
           violating_call_count, histogram
    FROM rollup
    WHERE {{whole_hours}}
      AND tool_name = %(tool)s
    UNION ALL
    SELECT {{quarter_slot}}, {{effect_side}}, completed_count, failed_count, violating_call_count,
           histogram
    FROM quarter_rollup
    WHERE {{cut_quarters}}
      AND tool_name = %(tool)s
) AS whole
GROUP BY slot, side
UNION ALL
SELECT slot, taken_from, side, sum(calls)::bigint, sum(failed)::bigint, sum(violating)::bigint,
       NULL, array_agg(bucket), array_agg(calls)
FROM (
    SELECT piece.slot, piece.taken_from, i.side, i.bucket, count(*) AS calls,
           count(*) FILTER (WHERE i.state = 'failed') AS failed,
           count(*) FILTER (WHERE i.violation_count > 0) AS violating
    FROM {{cell_pieces}}
    CROSS JOIN LATERAL (
        SELECT {{effect_side}} AS side, state, violation_count, {{latency_bucket}} AS bucket
        FROM invocation
        WHERE {{piece_calls}}
          AND state IN ('ok', 'failed')
          AND tool_name = %(tool)s
        LIMIT ALL
    ) AS i
    GROUP BY piece.slot, piece.taken_from, i.side, i.bucket
) AS single
GROUP BY slot, taken_from, side

-- effect_of_query --
-- The same of the calls that match a query, which are read one by one.
SELECT slot, NULL::integer, side, sum(calls)::bigint, sum(failed)::bigint, sum(violating)::bigint,
       NULL, array_agg(bucket), array_agg(calls)
FROM (
    SELECT width_bucket(started_at, %(bounds)s::timestamptz[]) - 1 AS slot,
           {{effect_side}} AS side, {{latency_bucket}} AS bucket, count(*) AS calls,
           count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE violation_count > 0) AS violating
    FROM invocation AS call
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND started_at >= %(start)s
      AND started_at < %(end)s
      AND tool_name = %(tool)s
      AND state IN ('ok', 'failed')
      AND {{call_matches}}
    GROUP BY 1, 2, 3
) AS single
GROUP BY slot, side
