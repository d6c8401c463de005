-- callers_of_tool --
-- Which process called which version of a tool, among the newest calls of a range. Latest call
-- first.
SELECT tool_version, coalesce(producer_id, ''), count(*), count(*) FILTER (WHERE state = 'failed'),
       max(started_at), (sum(count(*)) OVER ())::bigint
FROM (
    SELECT tool_version, producer_id, state, started_at
    FROM invocation AS call
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND tool_name = %(tool)s
      AND started_at >= %(since)s
      AND started_at < %(until)s
      AND {{call_matches}}
    ORDER BY started_at DESC
    LIMIT %(call_limit)s
) AS newest
GROUP BY tool_version, coalesce(producer_id, '')
ORDER BY max(started_at) DESC, tool_version, coalesce(producer_id, '')
LIMIT %(limit)s
