-- {{in_stream_from}} --
-- Whether a batch of executors, or of the server itself, has an entry from an index on.
tenant_id = %(tenant_id)s
  AND is_own = %(is_own)s
  AND event_count > 0
  AND first_index >= (
      SELECT coalesce(max(first_index), 0)
      FROM batch
      WHERE tenant_id = %(tenant_id)s AND first_index <= %(first_index)s AND event_count > 0
  )
  AND first_index + event_count > %(first_index)s

-- stream_batches --
-- The next batches of executors, or of the server itself, with an entry from an index on: the first
-- one, and so many of those behind it that they have a number of events.
WITH near AS (
    SELECT batch_on, batch_id, first_index,
           sum(event_count) OVER (ORDER BY first_index) - event_count AS before
    FROM (
        SELECT batch_on, batch_id, first_index, event_count
        FROM batch
        WHERE {{in_stream_from}}
          AND first_index < %(end_index)s
        ORDER BY first_index
        LIMIT 200
    ) AS next
)
SELECT b.batch_id, b.received_at, b.first_index, b.event_count, b.leaves, b.payload, b.is_own
FROM near
JOIN batch b
  ON b.tenant_id = %(tenant_id)s AND b.batch_on = near.batch_on AND b.batch_id = near.batch_id
WHERE near.before < %(event_limit)s
ORDER BY b.first_index

-- stream_oldest --
-- When the next entry of executors, or of the server itself, was received.
SELECT received_at
FROM batch
WHERE {{in_stream_from}}
ORDER BY first_index
LIMIT 1
