-- evidence_head --
-- The newest checkpoint of the newest epoch, or of a given epoch.
SELECT epoch, origin, size
FROM ledger_checkpoint
WHERE tenant_id = %(tenant_id)s AND (%(epoch)s::integer IS NULL OR epoch = %(epoch)s)
ORDER BY epoch DESC, size DESC
LIMIT 1

-- evidence_range --
-- The first signed entry that was received in a time range, or belongs to a call that started in
-- it or to a decision made in it, whenever the entry was received; NULL without one. Then the end of
-- the entries received before the range. Then the nearest entries around all of these that were
-- received before and after the range; NULL without one. Entries received at the same time may be in
-- the log in the other order.
WITH batches AS (
    SELECT batch_id, received_at, first_index, least(first_index + event_count, %(size)s) AS end_index
    FROM batch
    WHERE tenant_id = %(tenant_id)s AND first_index < %(size)s AND event_count > 0
), called AS (
    SELECT start_batch_id AS batch_id
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND started_at >= %(start)s AND started_at < %(end)s
    UNION
    SELECT end_batch_id
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND started_at >= %(start)s AND started_at < %(end)s
    UNION
    SELECT batch_id
    FROM decision
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND decided_at >= %(start)s AND decided_at < %(end)s
), enclosed AS (
    SELECT min(b.first_index) AS first_index, max(b.end_index) AS end_index
    FROM batches b
    LEFT JOIN called c ON c.batch_id = b.batch_id
    WHERE (b.received_at >= %(start)s AND b.received_at < %(end)s) OR c.batch_id IS NOT NULL
)
SELECT e.first_index,
       coalesce(max(b.end_index) FILTER (WHERE b.received_at < %(start)s), 0),
       max(b.end_index) FILTER (WHERE b.received_at < %(start)s AND b.first_index < e.first_index),
       min(b.first_index) FILTER (WHERE b.received_at >= %(end)s AND b.first_index >= e.end_index)
FROM enclosed e
LEFT JOIN batches b ON true
GROUP BY e.first_index, e.end_index

-- evidence_batches --
-- The next batches with an entry of the range, in the order of the log.
SELECT batch_id, received_at, first_index, event_count, leaves, payload, is_own
FROM batch
WHERE tenant_id = %(tenant_id)s
  AND first_index >= (
      SELECT coalesce(max(first_index), 0)
      FROM batch
      WHERE tenant_id = %(tenant_id)s AND first_index <= %(first_index)s
  )
  AND first_index < %(end_index)s
  AND (first_index, batch_id) > (%(after_index)s, %(after_id)s)
ORDER BY first_index, batch_id
LIMIT %(batch_limit)s

-- evidence_own_batches --
-- The next batches that the server itself added. Declarations of erasures are among them.
SELECT batch_id, received_at, first_index, event_count, leaves, payload, is_own
FROM batch
WHERE tenant_id = %(tenant_id)s
  AND is_own
  AND first_index >= %(first_index)s
  AND first_index < %(end_index)s
  AND (first_index, batch_id) > (%(after_index)s, %(after_id)s)
ORDER BY first_index, batch_id
LIMIT %(batch_limit)s

-- evidence_checkpoints --
-- The last checkpoint before a range, the first after it, the newest one, and some within the range
-- at even distances.
SELECT size, note
FROM (
    SELECT size, note, lead(size) OVER sizes AS next_size, lag(size) OVER sizes AS last_size,
           row_number() OVER sizes AS number, count(*) OVER () AS total
    FROM ledger_checkpoint
    WHERE tenant_id = %(tenant_id)s AND epoch = %(epoch)s AND size <= %(size)s
    WINDOW sizes AS (ORDER BY size)
) AS each
WHERE size = %(size)s
   OR (size <= %(first_index)s AND next_size > %(first_index)s)
   OR (size >= %(end_index)s AND coalesce(last_size, -1) < %(end_index)s)
   OR (
       size BETWEEN %(first_index)s AND %(end_index)s
       AND number %% (1 + total / %(count)s) = 0
   )
ORDER BY size

-- evidence_versions --
-- Versions of registered tools as in the registry, newest first, until their declarations exceed a
-- number of bytes. Also the number of all versions.
SELECT t.name, v.number, v.digest, v.description, v.input_schema, v.output_schema, v.trusted,
       v.ephemeral, v.on_collision, v.created_at, v.created_by, v.created_by_key, s.of_all
FROM (
    SELECT id,
           sum(octet_length(description) + octet_length(input_schema)
               + coalesce(octet_length(output_schema), 0)) OVER (ORDER BY created_at DESC, id DESC)
               AS bytes_so_far,
           count(*) OVER () AS of_all
    FROM tool_version
    WHERE tenant_id = %(tenant_id)s AND created_at < %(before)s
      AND EXISTS (  -- one without its tool would count as left out, and is missing
          SELECT FROM tool
          WHERE tool.tenant_id = %(tenant_id)s AND tool.id = tool_version.tool_id
      )
) s
JOIN tool_version v ON v.tenant_id = %(tenant_id)s AND v.id = s.id
JOIN tool t ON t.tenant_id = v.tenant_id AND t.id = v.tool_id
WHERE t.tenant_id = %(tenant_id)s AND s.bytes_so_far <= %(byte_limit)s
ORDER BY v.created_at DESC, v.id DESC
