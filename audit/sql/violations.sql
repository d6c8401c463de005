-- {{violation_pieces}} --
-- The violations outside whole UTC days, from the violations themselves.
tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND ((started_at >= %(start)s AND started_at < %(whole_from)s)
       OR (started_at >= %(whole_to)s AND started_at < %(end)s))

-- {{violation_whole_days}} --
-- The violations of the whole days between, from the sums by day.
tenant_id = %(tenant_id)s
  AND started_on >= %(first_whole_day)s
  AND started_on < %(end_whole_day)s

-- {{violation_in_range}} --
-- The violations of a range, whether its days are whole or not.
started_on BETWEEN %(first_day)s AND %(last_day)s
  AND started_at >= %(start)s
  AND started_at < %(end)s

-- {{violation_wanted}} --
-- The violations that match the request. NULL means any.
(%(tool)s::text IS NULL OR tool_name = %(tool)s)
  AND (%(version)s::text IS NULL OR tool_version = %(version)s)
  AND (%(code)s::text IS NULL OR code = %(code)s)
  AND (%(path)s::text IS NULL OR path_pattern = %(path)s)
  AND (%(outcome)s::text IS NULL OR outcome = %(outcome)s)

-- {{wrong_argument}} --
-- Violations of input schemas: those of decisions that rejected arguments, in the form of
-- violations of outputs. Their outcome is the decision; what was received is only in the log. Where
-- they are not asked for, `arguments_from` is after all days: no partition is planned, or read.
SELECT d.tenant_id, d.started_on, d.decided_at AS started_at, d.invocation_id, d.decision_id,
       d.tool_name, d.tool_version, wrong.path_pattern, wrong.code,
       coalesce(wrong.expected, '') AS expected, '' AS strategy, d.decision AS outcome,
       wrong.ordinality::integer - 1 AS ordinal
FROM decision d
CROSS JOIN LATERAL unnest(d.paths, d.codes, d.expected)
    WITH ORDINALITY AS wrong (path_pattern, code, expected, ordinality)
WHERE d.tenant_id = %(tenant_id)s
  AND d.decision = 'rejectedArguments'
  AND d.started_on >= %(arguments_from)s

-- violation_kinds --
-- Violations in a range by side, kind and part of the range, and by outcome. A part is a UTC day
-- if the range is long, otherwise the time between two of `bounds`.
SELECT side, tool_name, tool_version, path_pattern, code, strategy, outcome, part,
       sum(violation_count)::bigint, sum(call_count)::bigint, min(first_at), max(last_at)
FROM (
    SELECT 'results' AS side, tool_name, tool_version, path_pattern, code, strategy, outcome,
           width_bucket(greatest(started_on::timestamp AT TIME ZONE 'UTC', %(start)s),
                        %(bounds)s::timestamptz[]) - 1 AS part,
           violation_count, call_count, first_at, last_at
    FROM violation_day
    WHERE {{violation_whole_days}}
      AND {{violation_wanted}}
      AND %(with_results)s
    UNION ALL
    SELECT 'results', tool_name, tool_version, path_pattern, code, strategy, outcome,
           width_bucket(min(started_at), %(bounds)s::timestamptz[]) - 1,
           count(*), 1, min(started_at), max(started_at)
    FROM violation
    WHERE {{violation_pieces}}
      AND {{violation_wanted}}
      AND %(with_results)s
    GROUP BY tool_name, tool_version, path_pattern, code, strategy, outcome, invocation_id
    UNION ALL
    SELECT 'arguments', tool_name, tool_version, path_pattern, code, strategy, outcome,
           width_bucket(min(started_at), %(bounds)s::timestamptz[]) - 1,
           count(*), 1, min(started_at), max(started_at)
    FROM ({{wrong_argument}}) AS wrong
    WHERE {{violation_in_range}}
      AND {{violation_wanted}}
    GROUP BY tool_name, tool_version, path_pattern, code, strategy, outcome, invocation_id
) AS violating_call
GROUP BY GROUPING SETS (
    (side, tool_name, tool_version, path_pattern, code, part),
    (side, tool_name, code, strategy, outcome)
)

-- violation_history --
-- When each kind occurred first and last, as far back as the index goes.
SELECT 'results', tool_name, tool_version, path_pattern, code, min(first_at), max(last_at)
FROM violation_day
WHERE tenant_id = %(tenant_id)s
  AND {{violation_wanted}}
  AND %(with_results)s
GROUP BY tool_name, tool_version, path_pattern, code
UNION ALL
SELECT 'arguments', tool_name, tool_version, path_pattern, code, min(started_at), max(started_at)
FROM ({{wrong_argument}}) AS wrong
WHERE {{violation_wanted}}
GROUP BY tool_name, tool_version, path_pattern, code

-- new_violations --
-- Kinds of violations that first occurred within a range, in any version, newest first.
SELECT side, tool_name, path_pattern, code, sum(violation_count)::bigint, min(first_at),
       max(last_at)
FROM (
    SELECT 'results' AS side, tool_name, path_pattern, code, violation_count, first_at, last_at
    FROM violation_day
    WHERE tenant_id = %(tenant_id)s
      AND started_on <= %(last_day)s
    UNION ALL
    SELECT 'arguments', tool_name, path_pattern, code, 1, started_at, started_at
    FROM ({{wrong_argument}}) AS wrong
    WHERE started_on <= %(last_day)s
) AS both_sides
GROUP BY side, tool_name, path_pattern, code
HAVING min(first_at) >= %(start)s AND min(first_at) < %(end)s
ORDER BY min(first_at) DESC, tool_name, path_pattern, code, side
LIMIT %(limit)s

-- version_calls --
-- Calls by tool and version that started in a range, and when each version first ran in it: from
-- whole hours, quarters of cut hours, and the single calls beside them.
SELECT tool_name, tool_version, sum(calls)::bigint, min(first_at)
FROM (
    SELECT tool_name, tool_version, sum(started_count) AS calls, min(hour_at) AS first_at
    FROM rollup
    WHERE {{whole_hours}}
      AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
    GROUP BY tool_name, tool_version
    UNION ALL
    SELECT tool_name, tool_version, sum(started_count), min(quarter_at)
    FROM quarter_rollup
    WHERE {{cut_quarters}}
      AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
    GROUP BY tool_name, tool_version
    UNION ALL
    SELECT i.tool_name, i.tool_version,
           count(*) FILTER (WHERE piece.slot IS NOT NULL)
               - count(*) FILTER (WHERE piece.taken_from IS NOT NULL),
           min(i.started_at) FILTER (WHERE piece.slot IS NOT NULL)
    FROM {{cell_pieces}}
    CROSS JOIN LATERAL (
        SELECT tool_name, tool_version, started_at
        FROM invocation
        WHERE {{piece_calls}}
          AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
        LIMIT ALL
    ) AS i
    GROUP BY i.tool_name, i.tool_version
) AS version_calls
GROUP BY tool_name, tool_version

-- version_decided --
-- Calls by tool and version that were decided about in a range: how many of them did not start in
-- it, how many had their arguments rejected, and when the first of these decisions was made.
SELECT tool_name, tool_version, count(DISTINCT invocation_id) FILTER (WHERE NOT is_started),
       count(DISTINCT invocation_id) FILTER (WHERE decision = 'rejectedArguments'),
       min(decided_at)
FROM (
    SELECT d.tool_name, d.tool_version, d.invocation_id, d.decision, d.decided_at,
           EXISTS (
               SELECT FROM invocation i
               WHERE i.tenant_id = %(tenant_id)s
                 AND i.started_on BETWEEN %(first_day)s AND %(last_day)s
                 AND i.started_at >= %(start)s
                 AND i.started_at < %(end)s
                 AND i.invocation_id = d.invocation_id
           ) OR (d.tool_call_id IS NOT NULL AND EXISTS (
               SELECT FROM invocation i
               WHERE i.tenant_id = %(tenant_id)s
                 AND i.started_on BETWEEN %(first_day)s AND %(last_day)s
                 AND i.started_at >= %(start)s
                 AND i.started_at < %(end)s
                 AND i.trace_id = d.trace_id
                 AND i.tool_call_id = d.tool_call_id
           )) AS is_started
    FROM decision d
    WHERE d.tenant_id = %(tenant_id)s
      AND d.started_on BETWEEN %(first_day)s AND %(last_day)s
      AND d.decided_at >= %(start)s
      AND d.decided_at < %(end)s
      AND (%(tool)s::text IS NULL OR d.tool_name = %(tool)s)
) AS decided
GROUP BY tool_name, tool_version

-- violation_samples --
-- The newest violations in a range before a cursor: those of results as they were received.
SELECT side, tool_name, tool_version, path, code, expected, received, severity, strategy, outcome,
       started_on, invocation_id, started_at, ordinal, place_id
FROM (
    (
        SELECT 'results' AS side, tool_name, tool_version, path, code, expected, received,
               severity, strategy, outcome, started_on, invocation_id, started_at, ordinal,
               invocation_id AS place_id
        FROM violation
        WHERE tenant_id = %(tenant_id)s
          AND {{violation_in_range}}
          AND started_at <= %(at)s
          AND (started_at, invocation_id, ordinal) < (%(at)s, %(id)s, %(ordinal)s)
          AND {{violation_wanted}}
          AND %(with_results)s
        ORDER BY started_at DESC, invocation_id DESC, ordinal DESC
        LIMIT %(limit)s
    )
    UNION ALL
    (
        SELECT 'arguments', tool_name, tool_version, path_pattern, code, expected, NULL,
               'error', strategy, outcome, started_on, invocation_id, started_at, ordinal,
               decision_id
        FROM ({{wrong_argument}}) AS wrong
        WHERE {{violation_in_range}}
          AND started_at <= %(at)s
          AND (started_at, decision_id, ordinal) < (%(at)s, %(id)s, %(ordinal)s)
          AND {{violation_wanted}}
        ORDER BY started_at DESC, decision_id DESC, ordinal DESC
        LIMIT %(limit)s
    )
) AS both_sides
ORDER BY started_at DESC, place_id DESC, ordinal DESC
LIMIT %(limit)s

-- violation_samples_of --
-- The violations of some calls before a cursor, newest first.
SELECT 'results' AS side, tool_name, tool_version, path, code, expected, received, severity,
       strategy, outcome, started_on, invocation_id, started_at, ordinal, invocation_id AS place_id
FROM violation
WHERE tenant_id = %(tenant_id)s
  AND started_on = ANY(%(days)s)
  AND invocation_id = ANY(%(invocation_ids)s)
  AND (started_at, invocation_id, ordinal) < (%(at)s, %(id)s, %(ordinal)s)
  AND {{violation_wanted}}
ORDER BY started_at DESC, invocation_id DESC, ordinal DESC
LIMIT %(limit)s
