-- {{inbox_matches}} --
-- Whether a line is of the state, the code and the range of time that are listed.
id >= %(first_id)s
  AND received_at >= %(since)s
  AND received_at < %(until)s
  AND (%(code)s = '' OR code = %(code)s)
  AND CASE %(state)s
          WHEN '' THEN resolution IS NULL
          WHEN 'sent' THEN resolution IN ('accepted', 'duplicate', 'refused')
          WHEN 'discarded' THEN resolution = 'discarded'
          ELSE TRUE
      END

-- inbox_page --
-- Lines of the inbox before an id, newest first. Ids are in order of time.
SELECT id, received_at, code, message, line, raw_length,
       CASE WHEN %(with_raw)s THEN substring(raw FROM 1 FOR %(excerpt_bytes)s) END,
       resolution, resolved_at, resolved_by_name
FROM rejected_event
WHERE tenant_id = %(tenant_id)s
  AND id < %(before)s
  AND {{inbox_matches}}
ORDER BY id DESC
LIMIT %(page_limit)s

-- inbox_page_after --
-- As inbox_page, but after an id and oldest first: for going back to newer pages.
SELECT id, received_at, code, message, line, raw_length,
       CASE WHEN %(with_raw)s THEN substring(raw FROM 1 FOR %(excerpt_bytes)s) END,
       resolution, resolved_at, resolved_by_name
FROM rejected_event
WHERE tenant_id = %(tenant_id)s
  AND id > %(after)s
  AND {{inbox_matches}}
ORDER BY id
LIMIT %(page_limit)s

-- inbox_open_count --
-- How many lines are unresolved, counted up to a limit.
SELECT count(*)
FROM (
    SELECT 1
    FROM rejected_event
    WHERE tenant_id = %(tenant_id)s AND resolution IS NULL
    LIMIT %(count_limit)s
) AS waiting

-- inbox_refused_as --
-- The line that a request with one line left in the inbox, within a range of ids.
SELECT id
FROM rejected_event
WHERE tenant_id = %(tenant_id)s
  AND id BETWEEN %(first_id)s AND %(last_id)s
  AND batch_id = %(batch_id)s

-- call_near --
-- The day of a call's row: the same day if possible, else a neighbouring one.
SELECT started_on
FROM invocation
WHERE tenant_id = %(tenant_id)s
  AND invocation_id = %(invocation_id)s
  AND started_on = ANY(%(days)s)
ORDER BY abs(started_on - %(day)s), started_on
LIMIT 1

-- inbox_discard_waiting --
-- Discard the unresolved lines of one code that the user has seen, up to a limit. Skips lines that
-- another transaction is resolving.
UPDATE rejected_event AS e
SET resolution = 'discarded', resolved_at = %(now)s, resolved_by_id = %(user_id)s,
    resolved_by_name = %(user_name)s, discard_reason = %(reason)s
FROM (
    SELECT id
    FROM rejected_event
    WHERE tenant_id = %(tenant_id)s
      AND resolution IS NULL
      AND code = %(code)s
      AND id <= %(last_id)s
      AND id >= %(first_id)s
      AND received_at >= %(since)s
    ORDER BY id
    LIMIT %(discard_limit)s
    FOR UPDATE SKIP LOCKED
) AS waiting
WHERE e.tenant_id = %(tenant_id)s AND e.id = waiting.id
RETURNING 1
