-- replayed_calls --
-- The next ended calls of a tool, newest first, and where their events are in the log.
SELECT started_on, started_at, invocation_id, start_batch_id, start_pos, end_batch_id, end_pos
FROM invocation AS call
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND tool_name = %(tool)s
  AND started_at >= %(since)s
  AND started_at < %(until)s
  AND (started_at, invocation_id) < (%(at)s, %(id)s)
  AND end_batch_id IS NOT NULL
  AND {{call_matches}}
ORDER BY started_at DESC, invocation_id DESC
LIMIT %(page_limit)s

-- replayed_count --
-- How many such calls there are, counted up to a limit.
SELECT count(*)
FROM (
    SELECT 1
    FROM invocation AS call
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND tool_name = %(tool)s
      AND started_at >= %(since)s
      AND started_at < %(until)s
      AND end_batch_id IS NOT NULL
      AND {{call_matches}}
    LIMIT %(count_limit)s
) AS counted
