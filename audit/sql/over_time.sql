-- {{whole_hours}} --
-- The rows of `rollup` that lie within a slot: audit/queries/hour_cells.py. Lists of instants are told by a
-- SELECT: the planner would compare each with the statistics of each day, 24 ms for the thirty hours
-- that midnight in India cuts.
tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND hour_at >= %(start)s
  AND hour_at < %(end)s
  AND hour_at <> ALL((SELECT %(cut_hours)s::timestamptz[])::timestamptz[])

-- {{hour_slot}} --
-- The slot such a row is counted for.
width_bucket(hour_at, %(bounds)s::timestamptz[]) - 1

-- {{cut_quarters}} --
-- The rows of `quarter_rollup` that make up the other hours.
tenant_id = %(tenant_id)s
  AND started_on = ANY(%(quarter_days)s::date[])
  AND quarter_at = ANY((SELECT %(quarters)s::timestamptz[])::timestamptz[])

-- {{quarter_slot}} --
-- The slot such a row is counted for: the one its middle lies in.
width_bucket(quarter_at + interval '450 seconds', %(bounds)s::timestamptz[]) - 1

-- {{cell_pieces}} --
-- The stretches whose calls are read singly, each with the slot to add them to and the one to
-- take them from.
unnest(
    %(piece_starts)s::timestamptz[], %(piece_ends)s::timestamptz[], %(piece_slots)s::integer[],
    %(piece_taken_from)s::integer[]
) AS piece (start_at, end_at, slot, taken_from)

-- {{piece_sign}} --
-- Whether its calls are added to all slots but the first, taken from them, or neither: 1, -1, 0.
(coalesce(piece.slot, 0) > 0)::integer - (coalesce(piece.taken_from, 0) > 0)::integer

-- {{piece_calls}} --
-- The calls of such a stretch. In a LATERAL that ends with LIMIT ALL each is read along the index:
-- joined with the stretches, or told each one's day, whole days are read and most is thrown away.
-- Days are named one by one, as every further one is planned for: 10 ms for sixty.
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

-- {{figure_sums}} --
-- What the overview sums up of such rows.
sum(completed_count - failed_count)::bigint AS ok, sum(failed_count)::bigint AS failed,
           sum(violating_call_count)::bigint AS violating,
           sum(violation_count)::bigint AS violations, sum(prompt_tokens)::bigint AS prompt,
           sum(completion_tokens)::bigint AS completion, sum(histogram) AS histogram

-- figures_over_time --
-- Three kinds of rows: of a slot; of a tool in all slots but the first, which is the range before;
-- and, where calls are moved, of a tool in a slot. Of whole cells histograms are numbers
-- (audit/index/histogram.py), and a tool's row tells how many calls it has in each slot: a row of each
-- were 800 a page. Of the calls moved they are buckets and how many are in each: a row each were
-- 3,000. One statement: cells and the calls moved between them are of the same moment, and those
-- are read once.
SELECT slot, NULL::integer AS taken_from, 1 AS sign, tool_name, sum(histogram)::text AS histogram,
       NULL::integer[] AS buckets, NULL::bigint[] AS bucket_calls, sum(ok)::bigint AS ok,
       sum(failed)::bigint AS failed, 0::bigint AS open, sum(violating)::bigint AS violating,
       sum(violations)::bigint AS violations, sum(prompt)::bigint AS prompt,
       sum(completion)::bigint AS completion, array_agg(slot) AS slots,
       array_agg(ok + failed) AS slot_calls
FROM (
    SELECT {{hour_slot}} AS slot, {{hour_slot}} > 0 AS is_current, tool_name, {{figure_sums}}
    FROM rollup
    WHERE {{whole_hours}}
    GROUP BY 1, 2, 3
    UNION ALL
    SELECT {{quarter_slot}}, {{quarter_slot}} > 0, tool_name, {{figure_sums}}
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
       sum(prompt)::bigint, sum(completion)::bigint, NULL, NULL
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
              AND state <> 'open'
            LIMIT ALL
        ) AS i
    ) AS single
    GROUP BY GROUPING SETS (
        (slot, taken_from, bucket), (sign, tool_name, bucket), (slot, taken_from, tool_name)
    )
) AS summed
GROUP BY slot, taken_from, sign, tool_name
UNION ALL
SELECT slot, NULL, 1, tool_name, NULL, NULL, NULL, 0, 0, count(*), 0, 0, 0, 0, NULL, NULL
FROM (
    SELECT width_bucket(started_at, %(bounds)s::timestamptz[]) - 1 AS slot, tool_name,
           started_at >= (%(bounds)s::timestamptz[])[2] AS is_current
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND started_at >= %(start)s
      AND started_at < %(end)s
      AND end_batch_id IS NULL
) AS begun
GROUP BY GROUPING SETS ((slot), (is_current, tool_name))
HAVING GROUPING(slot) = 0 OR is_current

-- figures_before --
-- Whether there are calls of hours before an instant.
SELECT 1
FROM rollup
WHERE tenant_id = %(tenant_id)s
  AND started_on <= %(day)s
  AND hour_at < %(hour)s
LIMIT 1
