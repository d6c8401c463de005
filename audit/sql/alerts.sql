-- {{alert_sums}} --
-- What the calls of a step of a rule add, in the order of audit/alerts/cells.py.
count(*), count(*) FILTER (WHERE state IN ('ok', 'failed')),
       count(*) FILTER (WHERE state = 'failed'),
       count(*) FILTER (WHERE state <> 'cancelled' AND violation_count > 0),
       coalesce(sum(violation_count) FILTER (WHERE state <> 'cancelled'), 0),
       coalesce(sum(prompt_tokens) FILTER (WHERE state <> 'cancelled'), 0)
           + coalesce(sum(completion_tokens) FILTER (WHERE state <> 'cancelled'), 0)

-- {{alert_minute}} --
-- The minute since 1970 in which a call started.
floor(extract(epoch FROM started_at) / 60)::bigint

-- {{alert_calls}} --
-- All calls of a time.
tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND started_at >= %(since)s
  AND started_at < %(until)s

-- alert_cells --
-- The sums of matching calls by the minute of their start.
SELECT {{alert_minute}}, {{alert_sums}}
FROM (SELECT * FROM invocation WHERE {{call_walk}} LIMIT ALL) AS call
WHERE {{call_matches}}
GROUP BY 1

-- alert_durations --
-- Completed calls among them by minute and bucket of their duration.
SELECT {{alert_minute}}, {{latency_bucket}}, count(*)
FROM (SELECT * FROM invocation WHERE {{call_walk}} LIMIT ALL) AS call
WHERE {{call_matches}}
  AND state IN ('ok', 'failed')
GROUP BY 1, 2

-- alert_levels --
-- By how many matching calls more are open at a full minute than at the one before. A call counts
-- from its start, or from the end of its own timeout, to its end, but not longer than the window.
SELECT at, sum(step)::bigint
FROM (
    SELECT floor(extract(epoch FROM begins_at) / 60)::bigint + 1 AS begins,
           floor(extract(epoch FROM least(ended_at, started_at + %(window)s)) / 60)::bigint + 1
               AS ends
    FROM (
        SELECT started_at, ended_at,
               CASE WHEN NOT %(only_overdue)s THEN started_at
                    WHEN timeouts_ms BETWEEN 0 AND %(window_ms)s
                    THEN started_at + timeouts_ms * interval '1 millisecond'
               END AS begins_at
        FROM (SELECT * FROM invocation WHERE {{call_walk}} LIMIT ALL) AS call
        WHERE {{call_matches}}
    ) AS span
    WHERE begins_at < least(ended_at, started_at + %(window)s)
) AS minutes
CROSS JOIN LATERAL (VALUES (begins, 1), (ends, -1)) AS changes (at, step)
WHERE begins < ends
GROUP BY at

-- alert_loops --
-- How many matching calls are at least the third identical one of their trace in a time, by minute.
-- Calls of that time before are read, too, and not counted.
SELECT {{alert_minute}}, count(*)
FROM (
    SELECT started_at, count(*) OVER (
               PARTITION BY tool_name, call_id, trace_id
               ORDER BY started_at
               RANGE BETWEEN %(within)s::interval PRECEDING AND CURRENT ROW
           ) AS identical
    FROM (SELECT * FROM invocation WHERE {{call_walk}} LIMIT ALL) AS call
    WHERE {{call_matches}}
      AND tool_name <> ALL(%(polling)s::text[])
) AS counted
WHERE started_at >= %(counted_since)s
  AND identical >= %(loop_calls)s
GROUP BY 1

-- alert_tool_cells --
-- As alert_cells, for all calls, by tool and version: one read for many rules.
SELECT tool_name, tool_version, {{alert_minute}}, {{alert_sums}}
FROM invocation
WHERE {{alert_calls}}
GROUP BY 1, 2, 3

-- alert_tool_durations --
-- As alert_durations, likewise.
SELECT tool_name, tool_version, {{alert_minute}}, {{latency_bucket}}, count(*)
FROM invocation
WHERE {{alert_calls}}
  AND state IN ('ok', 'failed')
GROUP BY 1, 2, 3, 4

-- {{alert_cost}} --
-- Such calls i with their cost by the tenant's price lists; NULL if a call has no price.
SELECT i.tool_name, i.tool_version, i.started_at,
       {{cost}} AS cost
FROM priced_calls AS i
{{prices_of_calls}}

-- alert_costs --
-- Completed calls among the matching ones, those with a price, and what these cost, by minute.
WITH priced_calls AS (
    SELECT started_on, invocation_id, started_at, tool_name, tool_version
    FROM (SELECT * FROM invocation WHERE {{call_walk}} LIMIT ALL) AS call
    WHERE {{call_matches}}
      AND state IN ('ok', 'failed')
)
SELECT {{alert_minute}}, count(*), count(cost), coalesce(sum(cost), 0)
FROM ({{alert_cost}}) AS priced
GROUP BY 1

-- alert_tool_costs --
-- As alert_costs, for all calls, by tool and version: one read for many rules.
WITH priced_calls AS (
    SELECT started_on, invocation_id, started_at, tool_name, tool_version
    FROM invocation
    WHERE {{alert_calls}}
      AND state IN ('ok', 'failed')
)
SELECT tool_name, tool_version, {{alert_minute}}, count(*), count(cost), coalesce(sum(cost), 0)
FROM ({{alert_cost}}) AS priced
GROUP BY 1, 2, 3

-- {{alert_quarter}} --
-- The quarter of an hour since 1970.
floor(extract(epoch FROM quarter_at) / 900)::bigint

-- {{alert_quarter_sums}} --
-- As alert_sums and the histogram of durations, from what is stored for pages.
sum(started_count), sum(completed_count), sum(failed_count), sum(violating_call_count),
       sum(violation_count), sum(prompt_tokens) + sum(completion_tokens),
       CASE WHEN %(with_durations)s THEN sum(histogram)::text END

-- alert_quarters --
-- The sums of the quarters in each part, by tool and version: one read for many rules.
SELECT tool_name, tool_version,
       (%(starts)s::bigint[])[width_bucket({{alert_quarter}}, %(starts)s::bigint[])],
       {{alert_quarter_sums}}
FROM quarter_rollup
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND quarter_at >= %(since)s
  AND quarter_at < %(until)s
GROUP BY 1, 2, 3

-- alert_quarter_costs --
-- As alert_tool_costs, by the parts of alert_quarters. A list begins at midnight UTC, so no quarter has
-- calls of two. Units are read by call.
WITH called AS (
    SELECT tool_name, tool_version, {{alert_quarter}} AS quarter,
           width_bucket(quarter_at, %(list_starts)s::timestamptz[]) AS list,
           completed_count AS calls
    FROM quarter_rollup
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND quarter_at >= %(since)s
      AND quarter_at < %(until)s
), measured AS (
    SELECT unit_path_id, tool_version, floor(extract(epoch FROM started_at) / 900)::bigint AS quarter,
           count(*) AS calls, sum(units) AS units
    FROM call_units
    WHERE {{alert_calls}}
      AND unit_path_id = ANY(%(unit_path_ids)s::uuid[])
    GROUP BY 1, 2, 3
)
SELECT called.tool_name, called.tool_version,
       (%(starts)s::bigint[])[width_bucket(called.quarter, %(starts)s::bigint[])],
       sum(called.calls)::bigint,
       sum(CASE WHEN price.per_call IS NOT NULL THEN called.calls
                ELSE coalesce(measured.calls, 0) END)::bigint,
       coalesce(sum(coalesce(price.per_call * called.calls, price.per_unit * measured.units)), 0)
FROM called
LEFT JOIN {{price}}
    ON price.tool_name = called.tool_name AND price.list = called.list
LEFT JOIN measured
    ON measured.quarter = called.quarter
   AND measured.unit_path_id = price.unit_path_id
   AND measured.tool_version = called.tool_version
GROUP BY 1, 2, 3

-- alert_quarter_totals --
-- The sums of all calls, by quarter of an hour: when they change, its minutes are read again.
SELECT {{alert_quarter}}, sum(started_count), sum(completed_count), sum(failed_count),
       sum(violating_call_count), sum(violation_count), sum(prompt_tokens), sum(completion_tokens),
       sum(histogram)::text
FROM quarter_rollup
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND quarter_at >= %(since)s
  AND quarter_at < %(until)s
GROUP BY 1

-- alert_quarters_of --
-- The sums of one rule, by quarter of an hour.
SELECT {{alert_quarter}}, {{alert_quarter_sums}}
FROM quarter_rollup
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND quarter_at >= %(since)s
  AND quarter_at < %(until)s
  AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
  AND (%(tool_prefix)s::text IS NULL OR starts_with(tool_name, %(tool_prefix)s))
  AND (%(version)s::text IS NULL OR tool_version = %(version)s)
  AND (%(version_prefix)s::text IS NULL OR starts_with(tool_version, %(version_prefix)s))
GROUP BY 1

-- alerts_fired_in --
-- The newest alerts that began in a range, and what their rules watch.
SELECT a.id, a.held_from, a.title, a.severity, a.query,
       coalesce(r.condition ->> 'measure', r.condition ->> 'event', '')
FROM alert a
LEFT JOIN alert_rule r ON r.tenant_id = a.tenant_id AND r.id = a.rule_id
WHERE a.tenant_id = %(tenant_id)s
  AND a.held_from >= %(start)s
  AND a.held_from < %(end)s
ORDER BY a.held_from DESC, a.id DESC
LIMIT %(limit)s

-- alerts_of_range --
-- The alerts that began in a range, by rule, most first; and in the last columns those of all rules.
SELECT rule_name, sum(fired)::bigint, sum(alerts)::bigint, sum(muted)::bigint,
       sum(acknowledged)::bigint, sum(unresolved)::bigint,
       count(*) OVER (), sum(sum(fired)) OVER ()::bigint, sum(sum(alerts)) OVER ()::bigint,
       sum(sum(muted)) OVER ()::bigint, sum(sum(acknowledged)) OVER ()::bigint,
       sum(sum(unresolved)) OVER ()::bigint
FROM (
    SELECT rule_name, 1 + uncounted AS fired, (severity = 'alert')::integer AS alerts,
           is_muted::integer AS muted, (acknowledged_at IS NOT NULL)::integer AS acknowledged,
           (state <> 'resolved')::integer AS unresolved
    FROM alert
    WHERE tenant_id = %(tenant_id)s
      AND held_from >= %(start)s
      AND held_from < %(end)s
) AS one
GROUP BY rule_name
ORDER BY 2 DESC, rule_name
LIMIT %(limit)s

-- alerts_unresolved_by_rule --
-- How many alerts of each rule are not resolved.
SELECT rule_id, count(*)
FROM alert
WHERE tenant_id = %(tenant_id)s AND state <> 'resolved'
GROUP BY rule_id

-- navigation_counts --
-- How many rejected lines are waiting, alerts are not resolved, open notes are assigned to a user,
-- calls are open, and calls have violations, each up to a limit. One statement, as it is on every
-- page.
SELECT (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM rejected_event
        WHERE tenant_id = %(tenant_id)s AND resolution IS NULL
        LIMIT %(count_limit)s
    ) AS waiting
), (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM alert
        WHERE tenant_id = %(tenant_id)s AND state <> 'resolved'
        LIMIT %(count_limit)s
    ) AS unresolved
), (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM note
        WHERE tenant_id = %(tenant_id)s AND state = 'open'
          AND assignee = %(user_name)s AND assignee <> ''
        LIMIT %(count_limit)s
    ) AS assigned
), (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM invocation
        WHERE tenant_id = %(tenant_id)s
          AND started_on >= %(first_open_day)s
          AND started_at >= %(open_since)s
          AND end_batch_id IS NULL
        LIMIT %(count_limit)s
    ) AS open
), (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM invocation
        WHERE tenant_id = %(tenant_id)s
          AND started_on >= %(first_violating_day)s
          AND started_at >= %(violating_since)s
          AND violation_count > 0
        LIMIT %(count_limit)s
    ) AS violating
)

-- undelivered --
-- Messages that wait and since when, and how many were given up since a time. Ids are in order of
-- time: none of those is before the given one.
SELECT (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM alert_delivery
        WHERE tenant_id = %(tenant_id)s AND state = 'waiting'
        LIMIT %(count_limit)s
    ) AS waiting
), (
    SELECT min(created_at)
    FROM alert_delivery
    WHERE tenant_id = %(tenant_id)s AND state = 'waiting'
), (
    SELECT count(*)
    FROM (
        SELECT 1
        FROM alert_delivery
        WHERE tenant_id = %(tenant_id)s
          AND id >= %(first_id)s
          AND state = 'failed'
          AND finished_at >= %(since)s
        LIMIT %(count_limit)s
    ) AS given_up
)

-- alert_first_violations --
-- Kinds of violations whose first one is of these days: none is of a day before.
SELECT d.kind, d.tool_name, d.tool_version, d.path_pattern, d.code, d.first_at
FROM violation_day d
WHERE d.tenant_id = %(tenant_id)s
  AND d.started_on BETWEEN %(first_day)s AND %(last_day)s
  AND d.first_at >= %(since)s
  AND NOT EXISTS (
      SELECT FROM violation_day e
      WHERE e.tenant_id = %(tenant_id)s
        AND e.started_on < d.started_on
        AND e.kind = d.kind
  )
ORDER BY d.first_at, d.kind
LIMIT %(limit)s

-- alert_new_tools --
-- Tools that were seen first in these days, with the start of their first call. Hours are stored of
-- when a tool was seen.
SELECT o.tool_name, (
    SELECT min(i.started_at)
    FROM invocation i
    WHERE i.tenant_id = %(tenant_id)s
      AND i.started_on BETWEEN %(first_day)s AND %(last_day)s
      AND i.tool_name = o.tool_name
)
FROM observed_tool o
WHERE o.tenant_id = %(tenant_id)s
  AND o.first_seen_at >= date_trunc('hour', %(since)s::timestamptz)
ORDER BY o.first_seen_at, o.tool_name
LIMIT %(limit)s

-- alert_gaps --
-- Losses that producers declared since a time.
SELECT producer_id, from_seq, to_seq, reason, lost_count, heard_at
FROM gap
WHERE tenant_id = %(tenant_id)s
  AND heard_at >= %(since)s
ORDER BY heard_at, producer_id, from_seq
LIMIT %(limit)s

-- alert_silent_producers --
-- Producers that were heard since a time, and not since another one.
SELECT producer_id, last_heard_at
FROM producer
WHERE tenant_id = %(tenant_id)s
  AND last_heard_at >= %(since)s
  AND last_heard_at < %(until)s
ORDER BY last_heard_at, producer_id
LIMIT %(limit)s
