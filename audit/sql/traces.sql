-- {{trace_day}} --
-- What a list shows of a trace on one UTC day.
trace_id, first_started_at, last_at, first_tool_name, run_id, started_count,
       completed_count, failed_count, violation_count, prompt_tokens, completion_tokens,
       decision_count, cancelled_count

-- {{listed_traces}} --
-- Whether a day row is of a trace that began in a range and whose id begins with a prefix.
tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND first_started_at >= %(since)s
  AND first_started_at < %(until)s
  AND trace_id >= %(prefix)s
  AND (%(prefix_end)s = '' OR trace_id < %(prefix_end)s)

-- {{trace_day_matches}} --
-- Whether a day row is of the state that is listed.
(
    %(state)s = ''
    OR %(state)s = 'failed' AND failed_count > 0
    OR %(state)s = 'violation' AND violation_count > 0
    OR %(state)s = 'open' AND started_count > completed_count + cancelled_count
    OR %(state)s = 'decided' AND decision_count > 0
    OR %(state)s = 'ok' AND failed_count + violation_count = 0
       AND started_count = completed_count + cancelled_count
)

-- trace_days_before --
-- A page of the trace list: day rows before a cursor, newest first. The inner select scans
-- trace_started_idx and stops after scan_limit rows, so that a filter without an index cannot read
-- a whole month.
SELECT {{trace_day}}
FROM (
    SELECT *
    FROM trace
    WHERE {{listed_traces}}
      AND (first_started_at, trace_id) < (%(at)s, %(id)s)
    ORDER BY first_started_at DESC, trace_id DESC
    LIMIT %(scan_limit)s
) AS scanned
WHERE {{trace_day_matches}}
ORDER BY first_started_at DESC, trace_id DESC
LIMIT %(page_limit)s

-- trace_days_after --
-- As trace_days_before, but after a cursor and oldest first: for going back to newer pages.
SELECT {{trace_day}}
FROM (
    SELECT *
    FROM trace
    WHERE {{listed_traces}}
      AND (first_started_at, trace_id) > (%(at)s, %(id)s)
    ORDER BY first_started_at, trace_id
    LIMIT %(scan_limit)s
) AS scanned
WHERE {{trace_day_matches}}
ORDER BY first_started_at, trace_id
LIMIT %(page_limit)s

-- traces_sorted --
-- Of the newest day rows of traces before an instant, up to scan_limit: the traces by a figure, after
-- a place in this order, and an instant of each.
SELECT trace_id, first_at, sorted_by
FROM (
    SELECT trace_id, min(first_started_at) AS first_at,
           CASE %(figure)s::text
               WHEN 'duration' THEN
                   CASE WHEN sum(completed_count + cancelled_count) > 0 THEN
                       extract(epoch FROM max(last_at) - min(first_started_at))
                   END
               WHEN 'calls' THEN sum(started_count)::numeric
               WHEN 'failed' THEN sum(failed_count)::numeric
               ELSE sum(prompt_tokens)::numeric + sum(completion_tokens)
           END * %(sign)s AS sorted_by
    FROM (
        SELECT *
        FROM trace
        WHERE {{listed_traces}}
        ORDER BY first_started_at DESC, trace_id DESC
        LIMIT %(scan_limit)s
    ) AS scanned
    GROUP BY trace_id
    HAVING %(state)s = ''
        OR %(state)s = 'failed' AND sum(failed_count) > 0
        OR %(state)s = 'violation' AND sum(violation_count) > 0
        OR %(state)s = 'open' AND sum(started_count) > sum(completed_count + cancelled_count)
        OR %(state)s = 'decided' AND sum(decision_count) > 0
        OR %(state)s = 'ok' AND sum(failed_count + violation_count) = 0
           AND sum(started_count) = sum(completed_count + cancelled_count)
) AS sized
WHERE sorted_by IS NOT NULL
  AND (sorted_by, first_at, trace_id) < (%(sorted_figure)s::numeric, %(sorted_at)s, %(sorted_id)s)
ORDER BY sorted_by DESC, first_at DESC, trace_id DESC
LIMIT %(page_limit)s

-- traces_over_time --
-- How many traces began in each part of a range, by their worst state; of the newest scan_limit ones,
-- the oldest of which is in each row. A trace of several days counts on each of them.
SELECT width_bucket(first_started_at, %(bounds)s::timestamptz[]) - 1 AS part, state, count(*),
       min(first_started_at), sum(count(*)) OVER ()::bigint
FROM (
    SELECT first_started_at, decision_count,
           CASE WHEN failed_count > 0 THEN 'failed'
                WHEN violation_count > 0 THEN 'violation'
                WHEN started_count > completed_count + cancelled_count THEN 'open'
                ELSE 'ok'
           END AS state
    FROM trace
    WHERE {{listed_traces}}
    ORDER BY first_started_at DESC, trace_id DESC
    LIMIT %(scan_limit)s
) AS scanned
GROUP BY 1, 2

-- trace_scan_end --
-- The last row that trace_days_before scanned; no row if it reached the end.
WITH scanned AS (
    SELECT first_started_at, trace_id
    FROM trace
    WHERE {{listed_traces}}
      AND (first_started_at, trace_id) < (%(at)s, %(id)s)
    ORDER BY first_started_at DESC, trace_id DESC
    LIMIT %(scan_limit)s
)
SELECT first_started_at, trace_id
FROM scanned
WHERE (SELECT count(*) FROM scanned) >= %(scan_limit)s
ORDER BY first_started_at, trace_id
LIMIT 1

-- trace_days_of --
-- All day rows of some traces. Days are listed one by one: with equality on all three columns,
-- every partition answers from its primary key.
SELECT {{trace_day}}
FROM trace
WHERE tenant_id = %(tenant_id)s
  AND started_on = ANY(%(days)s)
  AND trace_id = ANY(%(trace_ids)s)
ORDER BY trace_id, started_on

-- trace_reasons --
-- For each trace, the call that explains its state. This is the first to end among the failed
-- calls, or else among the calls with a violation, as a failure spreads outwards from the call in
-- which it began. Otherwise it is the first open call. In long traces, only the first calls are
-- searched.
SELECT wanted.trace_id, call.tool_name, call.state, call.error_type, call.error_code,
       call.error_message, call.upstream_status, call.started_at, violation.path, violation.code
FROM unnest(%(trace_ids)s::text[], %(kinds)s::text[]) AS wanted (trace_id, kind)
CROSS JOIN LATERAL (
    SELECT *
    FROM (
        SELECT started_on, invocation_id, started_at, ended_at, tool_name, state, error_type,
               error_code, error_message, upstream_status
        FROM invocation
        WHERE tenant_id = %(tenant_id)s
          AND started_on BETWEEN %(first_day)s AND %(last_day)s
          AND invocation.trace_id = wanted.trace_id COLLATE "C"
          AND CASE wanted.kind
                  WHEN 'failed' THEN state = 'failed'
                  WHEN 'violation' THEN violation_count > 0
                  ELSE end_batch_id IS NULL
              END
        ORDER BY started_at
        LIMIT %(search_limit)s
    ) AS candidate
    ORDER BY ended_at, started_at
    LIMIT 1
) AS call
LEFT JOIN LATERAL (
    SELECT path, code
    FROM violation
    WHERE tenant_id = %(tenant_id)s
      AND violation.started_on = call.started_on
      AND violation.invocation_id = call.invocation_id
    ORDER BY ordinal
    LIMIT 1
) AS violation ON TRUE
