-- {{call_walk}} --
-- The rows that a search for calls scans: conditions that an index serves, in the form that it
-- needs. They are only equalities and ranges. NULL means no condition.
tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND started_at >= %(since)s
      AND started_at < %(until)s
      AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
      AND (%(tool_from)s::text IS NULL OR tool_name >= %(tool_from)s)
      AND (%(tool_to)s::text IS NULL OR tool_name < %(tool_to)s)
      AND (%(trace)s::text IS NULL OR trace_id = %(trace)s)
      AND (%(trace_from)s::text IS NULL OR trace_id >= %(trace_from)s)
      AND (%(trace_to)s::text IS NULL OR trace_id < %(trace_to)s)
      AND (%(run)s::text IS NULL OR run_id = %(run)s)
      AND (%(run_from)s::text IS NULL OR run_id >= %(run_from)s)
      AND (%(run_to)s::text IS NULL OR run_id < %(run_to)s)
      AND (%(call)s::text IS NULL OR call_id = %(call)s)
      AND (%(call_from)s::text IS NULL OR call_id >= %(call_from)s)
      AND (%(call_to)s::text IS NULL OR call_id < %(call_to)s)
      AND (%(code)s::text IS NULL OR error_code = %(code)s)
      AND (NOT %(only_open)s OR end_batch_id IS NULL)
      AND (NOT %(only_orphans)s OR start_batch_id IS NULL)
      AND (NOT %(only_failed)s OR state = 'failed')
      AND (NOT %(only_violating)s OR violation_count > 0)

-- {{call_matches}} --
-- Whether a scanned call matches the query. The query's conditions, which
-- `audit.queries.call_conditions` writes, replace TRUE.
(TRUE /* conditions */)

-- {{call_has_violation}} --
-- Whether a call violates its schema, optionally with a given code or at a given path.
coalesce((
          SELECT TRUE
          FROM violation
          WHERE violation.tenant_id = %(tenant_id)s
            AND violation.started_on BETWEEN %(first_day)s AND %(last_day)s
            AND violation.started_on = call.started_on
            AND violation.invocation_id = call.invocation_id
            AND (%(violation)s::text IS NULL OR violation.code = %(violation)s)
            AND (%(violation_prefix)s::text IS NULL
                 OR starts_with(violation.code, %(violation_prefix)s))
            AND (%(path)s::text IS NULL
                 OR violation.path_pattern = %(path)s OR violation.path = %(path)s)
            AND (%(path_prefix)s::text IS NULL
                 OR starts_with(violation.path_pattern, %(path_prefix)s)
                 OR starts_with(violation.path, %(path_prefix)s))
          LIMIT 1
      ), FALSE)

-- {{call_has_wrong_argument}} --
-- As call_has_violation, for arguments: whether a decision about a call names such a violation.
coalesce((
          SELECT TRUE
          FROM decision d
          CROSS JOIN LATERAL unnest(d.paths, d.codes) AS wrong (path, code)
          WHERE d.tenant_id = %(tenant_id)s
            AND d.trace_id = call.trace_id
            AND (d.invocation_id = call.invocation_id OR d.tool_call_id = call.tool_call_id)
            AND d.started_on BETWEEN call.started_on - 7 AND call.started_on + 7
            AND (%(violation)s::text IS NULL OR wrong.code = %(violation)s)
            AND (%(violation_prefix)s::text IS NULL
                 OR starts_with(wrong.code, %(violation_prefix)s))
            AND (%(path)s::text IS NULL OR wrong.path = %(path)s)
            AND (%(path_prefix)s::text IS NULL OR starts_with(wrong.path, %(path_prefix)s))
          LIMIT 1
      ), FALSE)

-- {{caller_of_call}} --
-- The tool whose call made a call, which began on the same day or the one before; without one, the
-- agent.
coalesce((
          SELECT above.tool_name
          FROM invocation above
          WHERE above.tenant_id = %(tenant_id)s
            AND above.started_on BETWEEN %(first_day)s::date - 1 AND %(last_day)s
            AND above.started_on BETWEEN call.started_on - 1 AND call.started_on
            AND above.invocation_id = call.parent_invocation_id
          LIMIT 1
      ), call.agent)

-- {{call_is_overdue}} --
-- Whether an open call has run longer than its own timeout, which may be any number.
coalesce(extract(epoch FROM %(now)s::timestamptz - started_at) * 1000 > timeouts_ms, FALSE)

-- {{call_is_crashed}} --
-- Whether an open call has presumably crashed: its producer has been silent for too long, and the
-- call's own timeout, if any, has passed.
(started_at < %(silent_since)s
          AND (timeouts_ms IS NULL OR {{call_is_overdue}})
          AND coalesce((
              SELECT producer.last_heard_at < %(silent_since)s
              FROM producer
              WHERE producer.tenant_id = %(tenant_id)s
                AND producer.producer_id = call.producer_id COLLATE "C"
          ), FALSE))

-- {{call_source}} --
-- The rows that a walk reads. For queries about decisions, {{calls_and_unrun}} replaces them.
invocation /* calls */

-- {{row_columns}} --
-- The columns of a call that a walk's conditions and results need.
tenant_id, budget_tokens, {{call_columns}}

-- {{unrun_call}} --
-- Calls that were decided about and did not run, one row each: their latest decision, in the
-- form of a call. A call ran if it has a start or an end within a week of that decision, by its id
-- or by the provider's id in the same trace. The log has the arguments in the decision's event.
SELECT d.tenant_id, d.decision, NULL::bigint AS budget_tokens, d.started_on, d.invocation_id,
       d.decided_at AS started_at, NULL::timestamptz AS ended_at, NULL::bigint AS duration_us,
       CASE WHEN d.decision IN ('awaiting', 'approved') THEN d.decision ELSE 'refused' END AS state,
       d.tool_name, d.tool_version, d.trace_id, d.parent_invocation_id,
       coalesce(d.call_id, '') AS call_id, d.tool_call_id, '' AS error_type,
       NULL::text AS error_code, NULL::text AS error_message, NULL::integer AS upstream_status,
       NULL::bigint AS retry_after_ms, NULL::integer AS attempt, NULL::text AS guard_strategy,
       NULL::text AS guard_outcome, 0 AS violation_count, 0::bigint AS prompt_tokens,
       0::bigint AS completion_tokens, NULL::boolean AS cache_hit, d.turn_id, d.run_id,
       d.ingestion_run_id, d.workflow_id, d.collection_id, d.document_id, d.document_version_id,
       d.case_id, NULL::bigint AS timeouts_ms, d.producer_id, d.batch_id AS start_batch_id,
       d.pos AS start_pos, NULL::uuid AS end_batch_id, NULL::integer AS end_pos,
       FALSE AS pair_conflict, NULL::text AS mcp_server, NULL::text AS mcp_client,
       NULL::text AS mcp_protocol, d.agent, d.agent_version, d.model, d.provider,
       NULL::text AS principal, d.environment, d.service
FROM decision d
WHERE d.tenant_id = %(tenant_id)s
  AND d.started_on BETWEEN %(first_day)s AND %(last_day)s
  AND {{decision_is_last}}
  AND NOT {{decided_call_ran}}

-- {{decision_is_last}} --
-- Whether a decision `d`, made on `first_day` or later, is the latest about its call.
NOT EXISTS (
    SELECT FROM decision later
    WHERE later.tenant_id = %(tenant_id)s
      AND later.started_on >= %(first_day)s
      AND later.started_on >= d.started_on
      AND later.invocation_id = d.invocation_id
      AND (later.decided_at, later.decision_id) > (d.decided_at, d.decision_id)
)

-- {{decided_call_ran}} --
-- Whether the call of a decision `d` ran, which was made between two days. These say which partitions
-- are planned for.
(EXISTS (
    SELECT FROM invocation i
    WHERE i.tenant_id = %(tenant_id)s
      AND i.started_on BETWEEN %(first_day)s::date - 7 AND %(last_day)s::date + 7
      AND i.started_on BETWEEN d.started_on - 7 AND d.started_on + 7
      AND i.invocation_id = d.invocation_id
) OR (d.tool_call_id IS NOT NULL AND EXISTS (
    SELECT FROM invocation i
    WHERE i.tenant_id = %(tenant_id)s
      AND i.started_on BETWEEN %(first_day)s::date - 7 AND %(last_day)s::date + 7
      AND i.started_on BETWEEN d.started_on - 7 AND d.started_on + 7
      AND i.trace_id = d.trace_id
      AND i.tool_call_id = d.tool_call_id
)))

-- {{calls_and_unrun}} --
-- Calls that ran and calls that did not.
(
            SELECT {{row_columns}}
            FROM invocation
            WHERE tenant_id = %(tenant_id)s
              AND started_on BETWEEN %(first_day)s AND %(last_day)s
              AND NOT %(only_unrun)s
            UNION ALL
            SELECT {{row_columns}}
            FROM ({{unrun_call}}) AS unrun
            WHERE %(unrun_decision)s::text IS NULL OR unrun.decision = %(unrun_decision)s
        ) AS invocation

-- {{call_has_decision}} --
-- Whether a decision was made about a call, optionally this one, by someone or something.
coalesce((
          SELECT TRUE
          FROM decision d
          WHERE d.tenant_id = %(tenant_id)s
            AND d.trace_id = call.trace_id
            AND (d.invocation_id = call.invocation_id OR d.tool_call_id = call.tool_call_id)
            AND d.started_on BETWEEN call.started_on - 7 AND call.started_on + 7
            AND (%(decision)s::text IS NULL OR d.decision = %(decision)s)
            AND (%(by)s::text IS NULL OR %(by)s IN (d.by_kind, d.by_id, d.by_name))
            AND (%(by_prefix)s::text IS NULL
                 OR starts_with(d.by_id, %(by_prefix)s) OR starts_with(d.by_name, %(by_prefix)s)
                 OR starts_with(d.by_kind, %(by_prefix)s))
          LIMIT 1
      ), FALSE)

-- {{call_columns}} --
-- The columns of a call in lists and exports.
started_on, invocation_id, started_at, ended_at, duration_us, state, tool_name, tool_version,
       trace_id, parent_invocation_id, call_id, tool_call_id, error_type, error_code,
       error_message, upstream_status, retry_after_ms, attempt, guard_strategy, guard_outcome,
       violation_count, prompt_tokens, completion_tokens, cache_hit, turn_id, run_id,
       ingestion_run_id, workflow_id, collection_id, document_id, document_version_id, case_id,
       timeouts_ms, producer_id, start_batch_id, start_pos, end_batch_id, end_pos, pair_conflict,
       mcp_server, mcp_client, mcp_protocol, agent, agent_version, model, provider, principal,
       environment, service

-- calls_before --
-- Matching calls before a cursor, newest first, and the last call that was scanned. The inner
-- select scans an index and stops after scan_limit rows, so that a filter without an index cannot
-- read a whole month. Rows are numbered in scan order, so that the scan can stop at page_limit.
SELECT {{call_columns}}, is_match, is_last
FROM {{walked_before}}
WHERE is_match OR is_last
ORDER BY started_at DESC, invocation_id DESC
LIMIT %(page_limit)s

-- calls_after --
-- As calls_before, but after a cursor and oldest first: for going back to newer pages.
SELECT {{call_columns}}, is_match, is_last
FROM (
    SELECT *,
           {{call_matches}} AS is_match,
           row_number() OVER (ORDER BY started_at, invocation_id) = %(scan_limit)s AS is_last
    FROM (
        SELECT *
        FROM {{call_source}}
        WHERE {{call_walk}}
          AND (started_at, invocation_id) > (%(at)s, %(id)s)
        ORDER BY started_at, invocation_id
        LIMIT %(scan_limit)s
    ) AS call
) AS walked
WHERE is_match OR is_last
ORDER BY started_at, invocation_id
LIMIT %(page_limit)s

-- {{walked_before}} --
-- The calls before a cursor, newest first, as many as calls_before scans, and whether each matches.
(
    SELECT *,
           {{call_matches}} IS TRUE AS is_match,
           row_number() OVER (ORDER BY started_at DESC, invocation_id DESC)
               = %(scan_limit)s AS is_last
    FROM (
        SELECT *
        FROM {{call_source}}
        WHERE {{call_walk}}
          AND (started_at, invocation_id) < (%(at)s, %(id)s)
        ORDER BY started_at DESC, invocation_id DESC
        LIMIT %(scan_limit)s
    ) AS call
) AS walked

-- calls_sorted --
-- Of the newest calls before an instant, up to scan_limit: those that match and have a figure, by it,
-- after a place in this order. And since when calls were scanned, if there are older ones.
SELECT {{call_columns}}, sorted_by, scanned_since
FROM (
    SELECT *,
           CASE %(figure)s::text
               WHEN 'duration' THEN duration_us::numeric
               ELSE prompt_tokens::numeric + completion_tokens
           END * %(sign)s AS sorted_by,
           max(started_at) FILTER (WHERE is_last) OVER () AS scanned_since
    FROM {{walked_before}}
) AS sized
WHERE is_match
  AND sorted_by IS NOT NULL
  AND (sorted_by, started_at, invocation_id)
      < (%(sorted_figure)s::numeric, %(sorted_at)s, %(sorted_id)s)
ORDER BY sorted_by DESC, started_at DESC, invocation_id DESC
LIMIT %(page_limit)s

-- {{matched_and_ran}} --
-- Whether one of them matches, and ran.
is_match AND state NOT IN ('refused', 'awaiting', 'approved')

-- {{last_scanned}} --
-- The last of them, if the scan reached its limit.
max(started_at) FILTER (WHERE is_last), (array_agg(invocation_id) FILTER (WHERE is_last))[1]

-- calls_counted_before --
-- How many calls before a cursor match, among as many as calls_before scans, and the last of these
-- if the scan reached its limit.
SELECT count(*) FILTER (WHERE is_match), {{last_scanned}}
FROM {{walked_before}}

-- calls_summed_before --
-- Sums of such calls, by version, state, error, part of the range and bucket of the duration; those
-- that do not match are one row. The row of the last call that was scanned names it.
SELECT is_match,
       CASE WHEN is_match THEN tool_name END AS tool_name,
       CASE WHEN is_match THEN tool_version END AS tool_version,
       CASE WHEN is_match THEN state END AS state,
       CASE WHEN is_match AND state = 'failed' THEN error_type END AS error_type,
       CASE WHEN is_match THEN width_bucket(started_at, %(bounds)s::timestamptz[]) - 1 END AS part,
       CASE WHEN is_match AND state IN ('ok', 'failed') THEN {{latency_bucket}} END AS bucket,
       count(*), sum(prompt_tokens), sum(completion_tokens), count(*) FILTER (WHERE cache_hit),
       count(*) FILTER (WHERE violation_count > 0), sum(violation_count)::bigint, {{last_scanned}}
FROM {{walked_before}}
GROUP BY 1, 2, 3, 4, 5, 6, 7

-- violations_summed_before --
-- Of such calls: how many match, by version; and the violations of their results, by kind, guard
-- and part of the range. NULL means any.
WITH scanned AS MATERIALIZED (
    SELECT started_on, invocation_id, started_at, tool_name, tool_version, violation_count,
           is_match, is_last
    FROM {{walked_before}}
)
SELECT tool_name, tool_version, NULL AS path_pattern, NULL AS code, NULL AS strategy,
       NULL AS outcome, NULL::integer AS part, 0::bigint AS violations,
       count(*) FILTER (WHERE is_match) AS calls, NULL::timestamptz AS first_at,
       NULL::timestamptz AS last_at, {{last_scanned}}
FROM scanned
GROUP BY tool_name, tool_version
UNION ALL
SELECT tool_name, tool_version, broken.path_pattern, broken.code, broken.strategy, broken.outcome,
       width_bucket(started_at, %(bounds)s::timestamptz[]) - 1, count(*),
       count(DISTINCT invocation_id), min(started_at), max(started_at), NULL, NULL
FROM scanned
CROSS JOIN LATERAL (
    SELECT path_pattern, code, strategy, outcome
    FROM violation
    WHERE violation.tenant_id = %(tenant_id)s
      AND violation.started_on BETWEEN %(first_day)s AND %(last_day)s
      AND violation.started_on = scanned.started_on
      AND violation.invocation_id = scanned.invocation_id
      AND (%(of_code)s::text IS NULL OR violation.code = %(of_code)s)
      AND (%(of_path)s::text IS NULL OR violation.path_pattern = %(of_path)s)
      AND (%(of_outcome)s::text IS NULL OR violation.outcome = %(of_outcome)s)
) AS broken
WHERE is_match AND violation_count > 0
GROUP BY 1, 2, 3, 4, 5, 6, 7

-- traces_matched_after --
-- Which of some traces have a matching call at a cursor or after it: they are on an earlier page.
SELECT wanted.trace_id
FROM unnest(%(trace_ids)s::text[]) AS wanted (trace_id)
CROSS JOIN LATERAL (
    SELECT
    FROM (
        SELECT *
        FROM {{call_source}}
        WHERE {{call_walk}}
          AND invocation.trace_id = wanted.trace_id COLLATE "C"
          AND (started_at, invocation_id) >= (%(at)s, %(id)s)
    ) AS call
    WHERE {{call_matches}}
    LIMIT 1
) AS listed

-- known_tools --
-- Names of tools and their versions, most calls first, to complete a query.
SELECT tool_name, tool_version
FROM rollup
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
GROUP BY tool_name, tool_version
ORDER BY sum(started_count) DESC, tool_name, tool_version
LIMIT 500

-- known_error_types --
-- Types of errors, most frequent first.
SELECT error_type
FROM error_rollup
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND error_type <> ''
GROUP BY error_type
ORDER BY sum(call_count) DESC, error_type
LIMIT 100

-- known_violations --
-- Codes and paths of the newest violations, most frequent first.
SELECT code, path_pattern
FROM (
    SELECT code, path_pattern
    FROM violation
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
    ORDER BY started_at DESC
    LIMIT 5000
) AS newest
GROUP BY code, path_pattern
ORDER BY count(*) DESC, code, path_pattern
LIMIT 500

-- known_dimension --
-- Values of a dimension of the newest calls, most frequent first. The parameter names its column.
SELECT value
FROM (
    SELECT CASE %(dimension)s::text
               WHEN 'agent' THEN agent
               WHEN 'agent_version' THEN agent_version
               WHEN 'model' THEN model
               WHEN 'provider' THEN provider
               WHEN 'service' THEN service
               WHEN 'environment' THEN environment
               WHEN 'principal' THEN principal
               WHEN 'run_id' THEN run_id
               WHEN 'mcp_server' THEN mcp_server
               WHEN 'mcp_client' THEN mcp_client
               WHEN 'mcp_protocol' THEN mcp_protocol
           END AS value
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
    ORDER BY started_at DESC
    LIMIT 5000
) AS newest
WHERE value IS NOT NULL
GROUP BY value
ORDER BY count(*) DESC, value
LIMIT 100

-- known_error_codes --
-- Codes of the newest errors, most frequent first.
SELECT error_code
FROM (
    SELECT error_code
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
    ORDER BY started_at DESC
    LIMIT 5000
) AS newest
WHERE error_code IS NOT NULL
GROUP BY error_code
ORDER BY count(*) DESC, error_code
LIMIT 100

-- open_tally --
-- How many calls are open, and how many of them are overdue and presumed crashed. Those that wait or
-- work on are neither. Only the newest calls up to a limit are counted. Then how many have an end
-- and no start, up to the same limit.
SELECT count(*),
       count(*) FILTER (WHERE is_overdue),
       count(*) FILTER (WHERE is_crashed),
       count(*) FILTER (WHERE NOT is_overdue AND NOT is_crashed AND NOT is_interim),
       (
           SELECT count(*)
           FROM (
               SELECT 1
               FROM invocation
               WHERE tenant_id = %(tenant_id)s
                 AND started_on <= %(last_day)s
                 AND start_batch_id IS NULL
               LIMIT %(count_limit)s
           ) AS orphans
       )
FROM (
    SELECT state <> 'open' AS is_interim,
           state = 'open' AND {{call_is_overdue}} AS is_overdue,
           state = 'open' AND started_at < %(silent_since)s
               AND (timeouts_ms IS NULL OR {{call_is_overdue}})
               AND coalesce(p.last_heard_at < %(silent_since)s, FALSE) AS is_crashed
    FROM (
        SELECT started_at, timeouts_ms, producer_id, state
        FROM invocation
        WHERE tenant_id = %(tenant_id)s
          AND started_on <= %(last_day)s
          AND end_batch_id IS NULL
        ORDER BY started_at DESC
        LIMIT %(count_limit)s
    ) AS call
    -- Same rule as call_is_crashed, but with a join: 2,000 single queries of producers took 5 ms.
    LEFT JOIN producer p
           ON p.tenant_id = %(tenant_id)s
          AND p.producer_id = call.producer_id COLLATE "C"
    LIMIT ALL  -- otherwise each of the four counts evaluates the conditions again for every call
) AS judged

-- producers_heard --
-- When some producers last sent something.
SELECT producer_id, last_heard_at
FROM producer
WHERE tenant_id = %(tenant_id)s
  AND producer_id = ANY(%(producer_ids)s)

-- calls_by_id --
-- Some calls, by their days and ids, newest first. Of calls that did not run, the day is that of
-- their latest decision.
SELECT {{call_columns}}
FROM invocation
WHERE tenant_id = %(tenant_id)s
  AND started_on = ANY(%(days)s)
  AND invocation_id = ANY(%(invocation_ids)s)
UNION ALL
SELECT {{call_columns}}
FROM ({{unrun_call}}) AS unrun
WHERE started_on = ANY(%(days)s) AND invocation_id = ANY(%(invocation_ids)s)
ORDER BY started_at DESC, invocation_id DESC

-- call_day --
-- The newest of some days on which a call with this id started. Queried day by day, so that each
-- query reads only its own partition.
SELECT call.started_on
FROM unnest(%(days)s::date[]) AS wanted (day)
CROSS JOIN LATERAL (
    SELECT started_on
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND started_on = wanted.day
      AND invocation_id = %(invocation_id)s
    LIMIT 1
) AS call
ORDER BY call.started_on DESC
LIMIT 1
