-- {{whole_hours}} --
-- The rows of `rollup` that are entirely within a slot: audit/queries/hour_cells.py. Lists of
-- instants are passed through a SELECT, as the planner would otherwise compare each instant with
-- the statistics of each day: 24 ms for the thirty hours that midnight in India cuts.
tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND hour_at >= %(start)s
  AND hour_at < %(end)s
  AND hour_at <> ALL((SELECT %(cut_hours)s::timestamptz[])::timestamptz[])

-- {{hour_slot}} --
-- The slot in which such a row is counted.
width_bucket(hour_at, %(bounds)s::timestamptz[]) - 1

-- {{cut_quarters}} --
-- The rows of `quarter_rollup` that make up the cut hours.
tenant_id = %(tenant_id)s
  AND started_on = ANY(%(quarter_days)s::date[])
  AND quarter_at = ANY((SELECT %(quarters)s::timestamptz[])::timestamptz[])

-- {{quarter_slot}} --
-- The slot in which such a row is counted: the one that contains its middle.
width_bucket(quarter_at + interval '450 seconds', %(bounds)s::timestamptz[]) - 1

-- {{cell_pieces}} --
-- The intervals whose calls are read singly, each with the slot to add them to and the slot to
-- subtract them from.
unnest(
    %(piece_starts)s::timestamptz[], %(piece_ends)s::timestamptz[], %(piece_slots)s::integer[],
    %(piece_taken_from)s::integer[]
) AS piece (start_at, end_at, slot, taken_from)

-- {{piece_sign}} --
-- Effect of an interval's calls on the total of the slots that are no part of the range before: added
-- (1), subtracted (-1) or none (0).
(coalesce(piece.slot, 0) >= %(current)s)::integer
- (coalesce(piece.taken_from, 0) >= %(current)s)::integer

-- {{piece_calls}} --
-- The calls of such an interval. Use it in a LATERAL that ends with LIMIT ALL, so that each
-- interval is read along the index. With a plain join, or with one day per interval, PostgreSQL
-- reads whole days and discards most rows. Only the necessary days are listed, as each further day
-- costs planning time: 10 ms for sixty.
tenant_id = %(tenant_id)s
      AND started_on = ANY(%(piece_days)s::date[])
      AND started_at >= piece.start_at
      AND started_at < piece.end_at

-- {{latency_bucket}} --
-- The bucket of a call's duration, by the formula of audit/index/histogram.py.
CASE WHEN duration_us < %(lowest_us)s THEN 0
     ELSE least(1 + floor(ln(duration_us / %(lowest_us)s::float8) / %(log_growth)s::float8),
                %(last_bucket)s)
END::integer

-- {{uncounted_calls}} --
-- Open and cancelled calls of a range: no sum of completed calls includes them, and they are few.
tenant_id = %(tenant_id)s
          AND started_on BETWEEN %(first_day)s AND %(last_day)s
          AND started_at >= %(start)s
          AND started_at < %(end)s

-- {{figure_sums}} --
-- The sums that the overview shows, over such rows.
sum(completed_count - failed_count)::bigint AS ok, sum(failed_count)::bigint AS failed,
           sum(violating_call_count)::bigint AS violating,
           sum(violation_count)::bigint AS violations, sum(prompt_tokens)::bigint AS prompt,
           sum(completion_tokens)::bigint AS completion, sum(histogram) AS histogram

-- figures_over_time --
-- Three kinds of rows: of a slot; of a tool in all slots but those of the previous range, which are
-- before the slot `current`; and, for moved calls, of a tool in a slot. Histograms of whole cells are numbers
-- (audit/index/histogram.py), and a tool's row has its number of calls in each slot, as one row per
-- tool and slot would be 800 rows a page. Histograms of moved calls are buckets with their counts,
-- as one row per bucket would be 3,000. It is one statement, so that cells and the calls moved
-- between them are read at the same moment, and moved calls only once.
SELECT slot, NULL::integer AS taken_from, 1 AS sign, tool_name, sum(histogram)::text AS histogram,
       NULL::integer[] AS buckets, NULL::bigint[] AS bucket_calls, sum(ok)::bigint AS ok,
       sum(failed)::bigint AS failed, 0::bigint AS open, sum(violating)::bigint AS violating,
       sum(violations)::bigint AS violations, sum(prompt)::bigint AS prompt,
       sum(completion)::bigint AS completion, 0::bigint AS cancelled, array_agg(slot) AS slots,
       array_agg(ok + failed) AS slot_calls
FROM (
    SELECT {{hour_slot}} AS slot, {{hour_slot}} >= %(current)s AS is_current, tool_name, {{figure_sums}}
    FROM rollup
    WHERE {{whole_hours}}
    GROUP BY 1, 2, 3
    UNION ALL
    SELECT {{quarter_slot}}, {{quarter_slot}} >= %(current)s, tool_name, {{figure_sums}}
    FROM quarter_rollup
    WHERE {{cut_quarters}}
    GROUP BY 1, 2, 3
) AS whole
GROUP BY GROUPING SETS ((slot), (is_current, tool_name))
HAVING GROUPING(slot) = 0 OR is_current
UNION ALL
SELECT slot, taken_from, sign, tool_name, NULL,
       array_agg(bucket) FILTER (WHERE bucket IS NOT NULL),
       array_agg(ok + failed) FILTER (WHERE bucket IS NOT NULL), sum(ok)::bigint,
       sum(failed)::bigint, 0, sum(violating)::bigint, sum(violations)::bigint,
       sum(prompt)::bigint, sum(completion)::bigint, 0, NULL, NULL
FROM (
    SELECT slot, taken_from, sign, tool_name, bucket, count(*) FILTER (WHERE state = 'ok') AS ok,
           count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE violation_count > 0) AS violating,
           sum(violation_count) AS violations, sum(prompt_tokens) AS prompt,
           sum(completion_tokens) AS completion
    FROM (
        SELECT piece.slot, piece.taken_from, i.*, {{piece_sign}} AS sign
        FROM {{cell_pieces}}
        CROSS JOIN LATERAL (
            SELECT tool_name, state, violation_count, prompt_tokens, completion_tokens,
                   {{latency_bucket}} AS bucket
            FROM invocation
            WHERE {{piece_calls}}
              AND state IN ('ok', 'failed')
            LIMIT ALL
        ) AS i
    ) AS single
    GROUP BY GROUPING SETS (
        (slot, taken_from, bucket), (sign, tool_name, bucket), (slot, taken_from, tool_name)
    )
) AS summed
GROUP BY slot, taken_from, sign, tool_name
UNION ALL
SELECT slot, NULL, 1, tool_name, NULL, NULL, NULL, 0, 0, count(*) FILTER (WHERE NOT is_cancelled),
       0, 0, 0, 0, count(*) FILTER (WHERE is_cancelled), NULL, NULL
FROM (
    SELECT width_bucket(started_at, %(bounds)s::timestamptz[]) - 1 AS slot, tool_name,
           started_at >= (%(bounds)s::timestamptz[])[%(current)s::integer + 1] AS is_current, is_cancelled
    FROM (
        SELECT started_at, tool_name, FALSE AS is_cancelled
        FROM invocation
        WHERE {{uncounted_calls}}
          AND end_batch_id IS NULL
        UNION ALL
        SELECT started_at, tool_name, TRUE
        FROM invocation
        WHERE {{uncounted_calls}}
          AND state = 'cancelled'
          -- After all days if there are none: then no partition is planned.
          AND started_on >= %(cancelled_from)s
    ) AS uncounted
) AS begun
GROUP BY GROUPING SETS ((slot), (is_current, tool_name))
HAVING GROUPING(slot) = 0 OR is_current

-- newest_cancelled --
-- When a tenant's newest cancelled call started; no row without any. Planned once, like
-- newest_decision: a scan of two months takes 6 ms to plan.
SELECT started_at
FROM invocation
WHERE tenant_id = %(tenant_id)s AND state = 'cancelled'
ORDER BY started_at DESC
LIMIT 1

-- figures_before --
-- Whether there are calls in hours before an instant.
SELECT 1
FROM rollup
WHERE tenant_id = %(tenant_id)s
  AND started_on <= %(day)s
  AND hour_at < %(hour)s
LIMIT 1
