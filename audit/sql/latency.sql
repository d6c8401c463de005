-- {{of_tool}} --
-- Calls of the requested tool and version. NULL means any.
(%(tool)s::text IS NULL OR tool_name = %(tool)s)
  AND (%(version)s::text IS NULL OR tool_version = %(version)s)

-- {{spent_sums}} --
-- The sums that the page shows, over hours and quarters.
sum(completed_count) AS calls, sum(failed_count) AS failed, sum(prompt_tokens) AS prompt,
           sum(completion_tokens) AS completion, sum(cache_hit_count) AS hits,
           sum(histogram) AS histogram

-- latency_by_version --
-- Completed calls, their durations, tokens and cache hits: by slot, and by tool and version for all
-- slots but those before the current one, which are of the previous range. Also failed calls by tool and error type: by
-- whole hours and, at the two ends, as single calls, because few calls fail. Histograms of whole
-- hours and quarters are numbers (audit/index/histogram.py); those of moved calls are buckets with
-- their counts. It is one statement, as for the overview (over_time.sql).
SELECT slot, NULL::integer AS taken_from, 1 AS sign, tool_name, tool_version,
       NULL::text AS error_type, sum(histogram)::text AS histogram, NULL::integer[] AS buckets,
       NULL::bigint[] AS bucket_calls, sum(calls)::bigint AS calls, sum(failed)::bigint AS failed, sum(prompt), sum(completion),
       sum(hits)::bigint
FROM (
    SELECT {{hour_slot}} AS slot, {{hour_slot}} >= %(current)s AS is_current, tool_name,
           tool_version, {{spent_sums}}
    FROM rollup
    WHERE {{whole_hours}}
      AND {{of_tool}}
    GROUP BY 1, 2, 3, 4
    UNION ALL
    SELECT {{quarter_slot}}, {{quarter_slot}} >= %(current)s, tool_name, tool_version,
           {{spent_sums}}
    FROM quarter_rollup
    WHERE {{cut_quarters}}
      AND {{of_tool}}
    GROUP BY 1, 2, 3, 4
) AS whole
GROUP BY GROUPING SETS ((slot), (is_current, tool_name, tool_version))
HAVING GROUPING(slot) = 0 OR is_current
UNION ALL
SELECT NULL, NULL, 1, tool_name, NULL, error_type, NULL, NULL, NULL, 0, sum(calls)::bigint, 0, 0, 0
FROM (
    SELECT tool_name, error_type, sum(call_count) AS calls
    FROM error_rollup
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(whole_from_day)s AND %(whole_to_day)s
      AND hour_at >= %(whole_from)s
      AND hour_at < %(whole_to)s
      AND {{of_tool}}
    GROUP BY tool_name, error_type
    UNION ALL
    SELECT i.tool_name, i.error_type, count(*)
    FROM unnest(%(edge_starts)s::timestamptz[], %(edge_ends)s::timestamptz[])
        AS edge (start_at, end_at)
    CROSS JOIN LATERAL (
        SELECT tool_name, error_type
        FROM invocation
        WHERE tenant_id = %(tenant_id)s
          AND started_on = ANY(%(edge_days)s::date[])
          AND started_at >= edge.start_at
          AND started_at < edge.end_at
          AND state = 'failed'
          AND {{of_tool}}
        LIMIT ALL
    ) AS i
    GROUP BY i.tool_name, i.error_type
) AS failed
GROUP BY tool_name, error_type
UNION ALL
SELECT slot, taken_from, sign, tool_name, tool_version, NULL, NULL, array_agg(bucket),
       array_agg(calls), sum(calls)::bigint, sum(failed)::bigint, sum(prompt), sum(completion),
       sum(hits)::bigint
FROM (
    SELECT slot, taken_from, sign, tool_name, tool_version, bucket, count(*) AS calls,
           count(*) FILTER (WHERE state = 'failed') AS failed, sum(prompt_tokens) AS prompt,
           sum(completion_tokens) AS completion, count(*) FILTER (WHERE cache_hit) AS hits
    FROM (
        SELECT piece.slot, piece.taken_from, i.*, {{piece_sign}} AS sign
        FROM {{cell_pieces}}
        CROSS JOIN LATERAL (
            SELECT tool_name, tool_version, state, prompt_tokens, completion_tokens, cache_hit,
                   {{latency_bucket}} AS bucket
            FROM invocation
            WHERE {{piece_calls}}
              AND state IN ('ok', 'failed')
              AND {{of_tool}}
            LIMIT ALL
        ) AS i
    ) AS single
    GROUP BY GROUPING SETS (
        (slot, taken_from, bucket), (sign, tool_name, tool_version, bucket)
    )
) AS summed
GROUP BY slot, taken_from, sign, tool_name, tool_version

-- tokens_by_run --
-- The runs that used most tokens, among the newest traces that began in a range. Sums of bigints
-- are numeric, and so are sums of two such sums.
SELECT run_id, sum(started_count)::bigint, sum(prompt_tokens), sum(completion_tokens),
       min(first_started_at), sum(count(*)) OVER (), min(min(first_started_at)) OVER ()
FROM (
    SELECT run_id, started_count, prompt_tokens, completion_tokens, first_started_at
    FROM trace
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND first_started_at >= %(start)s
      AND first_started_at < %(end)s
    ORDER BY first_started_at DESC
    LIMIT %(trace_limit)s
) AS newest
GROUP BY run_id
ORDER BY run_id IS NULL, sum(prompt_tokens) + sum(completion_tokens) DESC, run_id
LIMIT %(limit)s

-- {{newest_ended}} --
-- The newest completed calls of a range, for analyses of single calls.
FROM invocation
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND started_at >= %(start)s
  AND started_at < %(end)s
  AND state IN ('ok', 'failed')
  AND {{of_tool}}
ORDER BY started_at DESC
LIMIT %(call_limit)s

-- newest_spent --
-- How much of their limits the newest calls used, what their upstreams answered, and how many were
-- retries. Limits may be any number that an executor sent, so they are compared as numeric.
SELECT tool_name, state, error_type, upstream_status, is_retry,
       CASE WHEN timeouts_ms IS NULL THEN NULL
            WHEN duration_us > timeouts_ms::numeric * 1000 THEN 3
            WHEN duration_us > timeouts_ms::numeric * 900 THEN 2
            WHEN duration_us > timeouts_ms::numeric * 500 THEN 1
            ELSE 0
       END AS timeout_band,
       CASE WHEN budget_tokens IS NULL THEN NULL
            WHEN tokens > budget_tokens THEN 3
            WHEN tokens > budget_tokens * 0.9 THEN 2
            WHEN tokens > budget_tokens * 0.5 THEN 1
            ELSE 0
       END AS budget_band,
       count(*), min(started_at), min(timeouts_ms), max(timeouts_ms), max(duration_us),
       min(budget_tokens), max(budget_tokens), max(tokens)
FROM (
    SELECT tool_name, state, error_type, upstream_status, (attempt > 1) IS TRUE AS is_retry,
           timeouts_ms, budget_tokens, duration_us, started_at,
           prompt_tokens::numeric + completion_tokens AS tokens
    {{newest_ended}}
) AS newest
GROUP BY 1, 2, 3, 4, 5, 6, 7

-- newest_waits --
-- The failed calls among them whose error says when to retry.
SELECT started_on, invocation_id, tool_name, trace_id, call_id, coalesce(attempt, 1), started_at,
       coalesce(ended_at, started_at), retry_after_ms, error_type
FROM (
    SELECT *
    {{newest_ended}}
) AS newest
WHERE state = 'failed'
  AND retry_after_ms IS NOT NULL
ORDER BY started_at DESC
LIMIT %(wait_limit)s

-- calls_after_waits --
-- The calls of some tools in some traces on some days. They may be retries.
SELECT started_on, invocation_id, tool_name, trace_id, call_id, coalesce(attempt, 1), started_at
FROM invocation
WHERE tenant_id = %(tenant_id)s
  AND started_on = ANY(%(days)s)
  AND trace_id = ANY(%(trace_ids)s)
  AND tool_name = ANY(%(tool_names)s)
  AND started_at >= %(first_at)s
ORDER BY started_at
LIMIT %(later_limit)s

-- newest_ends --
-- Where in the log the end events of the newest calls are.
SELECT tool_name, duration_us, prompt_tokens::numeric + completion_tokens, started_at,
       end_batch_id, end_pos
{{newest_ended}}
