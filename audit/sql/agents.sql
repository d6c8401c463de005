-- {{newest_calls}} --
-- The newest calls of a range, of all agents or of one.
tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND started_at >= %(start)s
  AND started_at < %(end)s
  AND (%(agent)s::text IS NULL OR agent = %(agent)s)
ORDER BY started_at DESC
LIMIT %(call_limit)s

-- start_of_newest --
-- When the newest calls of a range begin, of all agents, and how many they are.
SELECT min(started_at), count(*)
FROM (
    SELECT started_at
    FROM invocation
    WHERE {{newest_calls}}
) AS newest

-- agents_counted --
-- The newest calls of a range by agent, its version and tool, each with a histogram of durations: its
-- buckets and the calls in each. '': not reported. Three sorted lists of durations, one for each
-- group that the page shows, took four times as long.
SELECT agent, agent_version, tool_name, sum(calls)::bigint, sum(failed)::bigint,
       sum(violating)::bigint, sum(tokens), min(first_at), max(last_at),
       array_agg(bucket) FILTER (WHERE bucket IS NOT NULL),
       array_agg(calls) FILTER (WHERE bucket IS NOT NULL)
FROM (
    SELECT agent, agent_version, tool_name, bucket, count(*) AS calls,
           count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE violation_count > 0) AS violating,
           sum(prompt_tokens::numeric + completion_tokens) AS tokens,
           min(started_at) AS first_at, max(started_at) AS last_at
    FROM (
        SELECT coalesce(agent, '') AS agent, coalesce(agent_version, '') AS agent_version,
               tool_name, state, violation_count, prompt_tokens, completion_tokens, started_at,
               CASE WHEN state IN ('ok', 'failed') THEN {{latency_bucket}} END AS bucket
        FROM invocation
        WHERE {{newest_calls}}
    ) AS newest
    GROUP BY agent, agent_version, tool_name, bucket
) AS counted
GROUP BY agent, agent_version, tool_name

-- refused_by_agent --
-- Calls that were refused in a range and match a query, by agent, as their latest decisions name it.
SELECT coalesce(agent, ''), coalesce(agent_version, ''), tool_name, count(*), max(started_at)
FROM ({{unrun_call}}) AS call
WHERE started_at >= %(start)s
  AND started_at < %(end)s
  AND state = 'refused'
  AND {{call_matches}}
GROUP BY 1, 2, 3

-- environments_counted --
-- The same calls by environment, most of them first.
SELECT environment, count(*), count(*) FILTER (WHERE state = 'failed'),
       count(*) FILTER (WHERE violation_count > 0),
       sum(prompt_tokens::numeric + completion_tokens), max(started_at)
FROM (
    SELECT coalesce(environment, '') AS environment, state, violation_count, prompt_tokens,
           completion_tokens, started_at
    FROM invocation
    WHERE {{newest_calls}}
) AS newest
GROUP BY environment
ORDER BY count(*) DESC, environment

-- agents_summed_before --
-- The same of the calls of a query: those that ran and match, among the calls before a cursor that
-- calls_before scans. All others are one row.
SELECT ran, CASE WHEN ran THEN coalesce(agent, '') END AS agent,
       CASE WHEN ran THEN coalesce(agent_version, '') END AS agent_version,
       CASE WHEN ran THEN tool_name END AS tool_name,
       CASE WHEN ran AND state IN ('ok', 'failed') THEN {{latency_bucket}} END AS bucket,
       count(*), count(*) FILTER (WHERE state = 'failed'),
       count(*) FILTER (WHERE violation_count > 0),
       sum(prompt_tokens::numeric + completion_tokens), max(started_at), {{last_scanned}}
FROM (SELECT *, {{matched_and_ran}} AS ran FROM {{walked_before}}) AS walked
GROUP BY 1, 2, 3, 4, 5

-- {{among_calls}} --
-- Whether a call is of a range, a trace, a conversation or an agent; what is NULL does not count.
tenant_id = %(tenant_id)s
  AND (%(first_day)s::date IS NULL OR started_on BETWEEN %(first_day)s AND %(last_day)s)
  AND (%(start)s::timestamptz IS NULL OR started_at >= %(start)s)
  AND (%(end)s::timestamptz IS NULL OR started_at < %(end)s)
  AND (%(trace_id)s::text IS NULL OR trace_id = %(trace_id)s)
  AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s)
  AND (%(agent)s::text IS NULL OR agent = %(agent)s)

-- call_edges --
-- Which tool or agent made which calls: of a trace, of a conversation, or the newest of a range. The
-- parent of a call is looked for among the same calls. Each parent is sorted before its calls: for a
-- join, the planner chose a nested loop over ten thousand calls.
WITH chosen AS MATERIALIZED (
    SELECT invocation_id, parent_invocation_id, coalesce(agent, '') AS agent, tool_name, state
    FROM invocation
    WHERE {{among_calls}}
    ORDER BY started_at DESC
    LIMIT %(call_limit)s
), below AS (
    SELECT is_below, agent, tool_name, state,
           first_value(CASE WHEN NOT is_below THEN agent END) OVER parent AS above_agent,
           first_value(CASE WHEN NOT is_below THEN tool_name END) OVER parent AS above_tool
    FROM (
        SELECT parent_invocation_id AS parent_id, TRUE AS is_below, agent, tool_name, state
        FROM chosen
        WHERE parent_invocation_id IS NOT NULL
        UNION ALL
        SELECT invocation_id, FALSE, agent, tool_name, state
        FROM chosen
        WHERE EXISTS (SELECT FROM chosen WHERE parent_invocation_id IS NOT NULL)
    ) AS either
    WINDOW parent AS (PARTITION BY parent_id ORDER BY is_below)
)
SELECT above_agent, above_tool, agent, tool_name, count(*),
       count(*) FILTER (WHERE state = 'failed')
FROM (
    SELECT above_agent, above_tool, agent, tool_name, state
    FROM below
    WHERE is_below
    UNION ALL
    SELECT NULL, NULL, agent, tool_name, state
    FROM chosen
    WHERE parent_invocation_id IS NULL
) AS made
GROUP BY above_agent, above_tool, agent, tool_name
ORDER BY count(*) DESC, 1, 2, 3, 4
LIMIT %(row_limit)s

-- conversations --
-- The conversations of a range, the latest first: traces with a run id, from their sums.
SELECT run_id, count(DISTINCT trace_id), min(first_started_at), max(last_at), sum(started_count),
       sum(failed_count), sum(violation_count),
       sum(prompt_tokens::numeric + completion_tokens)
FROM (
    SELECT run_id, trace_id, first_started_at, last_at, started_count, failed_count,
           violation_count, prompt_tokens, completion_tokens
    FROM trace
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND first_started_at >= %(start)s
      AND first_started_at < %(end)s
      AND run_id IS NOT NULL
    ORDER BY first_started_at DESC
    LIMIT %(trace_limit)s
) AS newest
GROUP BY run_id
ORDER BY max(last_at) DESC, run_id
LIMIT %(row_limit)s

-- conversations_summed_before --
-- The matching calls that ran and name a conversation, by conversation and trace, among the calls
-- before a cursor that calls_before scans. All others are one row.
SELECT ran, CASE WHEN ran THEN run_id END AS run_id, CASE WHEN ran THEN trace_id END AS trace_id,
       min(started_at), max(coalesce(ended_at, started_at)), count(*),
       count(*) FILTER (WHERE state = 'failed'), sum(violation_count)::bigint,
       sum(prompt_tokens::numeric + completion_tokens), {{last_scanned}}
FROM (
    SELECT *, {{matched_and_ran}} AND run_id IS NOT NULL AS ran FROM {{walked_before}}
) AS walked
GROUP BY 1, 2, 3

-- conversation_traces --
-- The traces of a conversation by their calls, in order.
SELECT trace_id, min(started_at), max(coalesce(ended_at, started_at)), count(*),
       count(*) FILTER (WHERE state = 'failed'),
       sum(violation_count),
       sum(prompt_tokens::numeric + completion_tokens),
       array_agg(DISTINCT agent) FILTER (WHERE agent IS NOT NULL),
       (array_agg(tool_name ORDER BY started_at, invocation_id))[1]
FROM (
    SELECT trace_id, invocation_id, started_at, ended_at, state, violation_count, prompt_tokens,
           completion_tokens, agent, tool_name
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND run_id = %(run_id)s
    ORDER BY started_at DESC
    LIMIT %(call_limit)s
) AS newest
GROUP BY trace_id
ORDER BY min(started_at), trace_id
