-- calls_by_hour --
-- How many calls started in each UTC hour of a range, newest first, to decide how far back to
-- search.
SELECT hour_at, sum(started_count)::bigint
FROM rollup
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND hour_at > %(start)s - interval '1 hour'
  AND hour_at < %(end)s
GROUP BY hour_at
ORDER BY hour_at DESC

-- {{repeats_analyzed}} --
-- The calls among which identical ones are searched for: those of a query, if there is one.
tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND started_at >= %(start)s
      AND started_at < %(end)s
      AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
      AND tool_name <> ALL(%(polling)s::text[])
      AND {{call_matches}}

-- repeated_calls --
-- Call ids that occur more than once, most frequent first. Also how many such ids there are, how
-- many calls they have, and how many ids occur often enough for a loop.
SELECT call_id, count(*), count(*) OVER (), sum(count(*)) OVER ()::bigint,
       sum((count(*) >= %(loop_calls)s)::integer) OVER ()
FROM invocation AS call
WHERE {{repeats_analyzed}}
GROUP BY call_id
HAVING count(*) > 1
ORDER BY count(*) DESC, call_id
LIMIT %(repeat_limit)s

-- looping_calls --
-- Call ids that occur at least loop_calls times in one trace, most frequent first. Also how many
-- such pairs there are, and how many calls they have. Given call ids restrict the search, so that
-- an index is used; NULL means all.
SELECT call_id, trace_id, count(*) OVER (), sum(count(*)) OVER ()::bigint
FROM invocation AS call
WHERE {{repeats_analyzed}}
  AND (%(call_ids)s::text[] IS NULL OR call_id = ANY(%(call_ids)s::text[]))
GROUP BY call_id, trace_id
HAVING count(*) >= %(loop_calls)s
ORDER BY count(*) DESC, call_id, trace_id
LIMIT %(loop_limit)s

-- repeats_in_traces --
-- Durations and tokens of the calls with some call ids, by tool and trace: of all calls, and of the
-- first one.
SELECT tool_name, call_id, trace_id, count(*), count(*) FILTER (WHERE state = 'failed'),
       count(*) FILTER (WHERE cache_hit), sum(coalesce(duration_us, 0)), sum(tokens),
       min(started_at), max(started_at),
       (array_agg(coalesce(duration_us, 0) ORDER BY started_at, invocation_id))[1],
       (array_agg(tokens ORDER BY started_at, invocation_id))[1]
FROM (
    SELECT *, prompt_tokens::numeric + completion_tokens AS tokens
    FROM invocation AS call
    WHERE {{repeats_analyzed}}
      AND call_id = ANY(%(call_ids)s::text[])
) AS call
GROUP BY tool_name, call_id, trace_id

-- newest_results --
-- Where in the log the newest results of one tool's identical calls are. Only calls that succeeded.
SELECT end_batch_id, end_pos
FROM invocation AS call
WHERE {{repeats_analyzed}}
  AND call_id = %(call_id)s
  AND state = 'ok'
ORDER BY started_at DESC
LIMIT %(result_limit)s

-- newest_arguments --
-- Where in the log the newest start event for each of some pairs of tool and call id is.
SELECT wanted.tool_name, wanted.call_id, newest.start_batch_id, newest.start_pos
FROM unnest(%(tools)s::text[], %(call_ids)s::text[]) AS wanted (tool_name, call_id)
CROSS JOIN LATERAL (
    SELECT start_batch_id, start_pos
    FROM invocation AS call
    WHERE {{repeats_analyzed}}
      AND tool_name = wanted.tool_name
      AND call_id = wanted.call_id
      AND start_batch_id IS NOT NULL
    ORDER BY started_at DESC
    LIMIT 1
) AS newest
