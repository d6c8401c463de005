-- expired_batches --
-- The next batches of the log, in its order, as long as their time is over.
SELECT batch_on, batch_id, first_index, event_count, is_own, has_payload
FROM (
    SELECT batch_on, batch_id, first_index, event_count, is_own, payload IS NOT NULL AS has_payload,
           bool_and(received_at < %(before)s) OVER (ORDER BY first_index) AS is_over
    FROM (
        SELECT batch_on, batch_id, first_index, event_count, is_own, payload, received_at
        FROM batch
        WHERE tenant_id = %(tenant_id)s AND first_index >= %(erased_to)s AND event_count > 0
        ORDER BY first_index
        LIMIT %(batch_limit)s
    ) AS batches
) AS judged
WHERE is_over
ORDER BY first_index

-- erase_payloads --
-- Blanks the payloads of some batches. What the server says of the log stays. As the keeper.
UPDATE batch b SET payload = NULL
FROM unnest(%(days)s::date[], %(batch_ids)s::uuid[]) AS u (batch_on, batch_id)
WHERE b.tenant_id = %(tenant_id)s
  AND b.batch_on = u.batch_on
  AND b.batch_id = u.batch_id
  AND NOT b.is_own

-- note_erased_to --
-- How far retention has come. As the keeper.
UPDATE tenant_setting SET erased_to = %(erased_to)s WHERE tenant_id = %(tenant_id)s

-- expired_refused --
-- The next refused lines whose time is over and that still have their text.
SELECT id, CASE WHEN %(with_raw)s THEN raw END, received_at
FROM rejected_event
WHERE tenant_id = %(tenant_id)s
  AND id > %(after)s
  AND id < %(before_id)s
  AND received_at < %(before)s
  AND raw <> ''
ORDER BY id
LIMIT %(row_limit)s

-- blank_lines --
-- Blanks refused lines; what became of them stays. As the keeper.
UPDATE rejected_event r SET raw = ''
WHERE r.tenant_id = %(tenant_id)s AND r.id = ANY(%(ids)s)

-- oldest_day --
-- The first day of a table of the index, from some day on, that has a row of the tenant.
SELECT min(started_on)
FROM {table}
WHERE tenant_id = %(tenant_id)s AND started_on >= %(from)s AND started_on < %(before)s

-- delete_of_day --
-- Deletes rows of one day, hence of one partition, in which a ctid is one row's. As the owner.
DELETE FROM {table}
WHERE tenant_id = %(tenant_id)s
  AND started_on = %(day)s
  AND ctid = ANY(ARRAY(
      SELECT i.ctid FROM {table} i
      WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {is_held}
      LIMIT %(row_limit)s
  ))

-- held_call --
-- Of the table of calls: those that a hold covers.
{{call_is_held}}

-- held_with_call --
-- Of a call's other rows: those whose call was left.
EXISTS (
    SELECT FROM invocation c
    WHERE c.tenant_id = %(tenant_id)s
      AND c.started_on = %(day)s
      AND c.invocation_id = i.invocation_id
)

-- held_with_trace --
-- Of traces: those of which a call was left.
EXISTS (
    SELECT FROM invocation c
    WHERE c.tenant_id = %(tenant_id)s
      AND c.started_on = %(day)s
      AND c.trace_id = i.trace_id
)

-- held_with_day --
-- Of what sums up a day: all, as long as a call of it was left.
EXISTS (
    SELECT FROM invocation c WHERE c.tenant_id = %(tenant_id)s AND c.started_on = %(day)s
)

-- delete_expired_rollups --
-- Deletes the counters, which are few, of days of which no call is left, and tells how many calls
-- they counted. As the owner.
WITH gone AS (
    DELETE FROM rollup r
    WHERE r.tenant_id = %(tenant_id)s
      AND r.started_on < %(before)s
      AND NOT EXISTS (
          SELECT FROM invocation c
          WHERE c.tenant_id = %(tenant_id)s AND c.started_on = r.started_on
      )
    RETURNING started_count
)
SELECT coalesce(sum(started_count), 0)::bigint FROM gone
