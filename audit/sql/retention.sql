-- erase_payloads --
-- Blanks the payloads of the next batches of the log whose time is over, in its order, and tells
-- how far it came. Run as the keeper.
WITH next AS (
    SELECT batch_on, batch_id, end_index,
           bool_and(received_at < %(before)s) OVER (ORDER BY end_index) AS is_over
    FROM (
        SELECT batch_on, batch_id, received_at, first_index + event_count AS end_index
        FROM batch
        WHERE tenant_id = %(tenant_id)s AND first_index >= %(erased_to)s AND event_count > 0
        ORDER BY first_index
        LIMIT %(batch_limit)s
    ) AS batches
), erased AS (
    UPDATE batch b SET payload = NULL
    FROM next n
    WHERE b.tenant_id = %(tenant_id)s
      AND b.batch_on = n.batch_on
      AND b.batch_id = n.batch_id
      AND n.is_over
      AND b.payload IS NOT NULL
      AND NOT b.is_own  -- what the server says of the log stays
)
SELECT max(end_index), count(*) FROM next WHERE is_over

-- blank_refused --
-- Blanks refused lines whose time is over; what became of them stays. Run as the keeper.
UPDATE rejected_event r SET raw = ''
WHERE r.tenant_id = %(tenant_id)s
  AND r.id = ANY(ARRAY(
      SELECT id FROM rejected_event
      WHERE tenant_id = %(tenant_id)s
        AND id < %(before_id)s
        AND received_at < %(before)s
        AND raw <> ''
      ORDER BY id
      LIMIT %(row_limit)s
  ))
RETURNING 1

-- oldest_day --
-- The first day of a table of the index that has a row of the tenant.
SELECT min(started_on) FROM {table} WHERE tenant_id = %(tenant_id)s AND started_on < %(before)s

-- delete_of_day --
-- Deletes rows of one day, hence of one partition, in which a ctid is one row's. As the owner.
DELETE FROM {table}
WHERE tenant_id = %(tenant_id)s
  AND started_on = %(day)s
  AND ctid = ANY(ARRAY(
      SELECT ctid FROM {table}
      WHERE tenant_id = %(tenant_id)s AND started_on = %(day)s
      LIMIT %(row_limit)s
  ))

-- delete_expired_rollups --
-- Deletes the counters, which are few, and tells how many calls they counted. As the owner.
WITH gone AS (
    DELETE FROM rollup
    WHERE tenant_id = %(tenant_id)s AND started_on < %(before)s
    RETURNING started_count
)
SELECT coalesce(sum(started_count), 0)::bigint FROM gone
