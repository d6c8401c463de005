-- ledger_status --
-- The state of a tenant's ledger: size of the log, folded entries, last signed checkpoint, and the
-- signer's refusal. All are read at one moment, so the log is shorter than its tiles only if it was
-- truncated.
SELECT coalesce((SELECT size FROM ledger_head WHERE tenant_id = %(tenant_id)s), 0),
       coalesce(t.folded, 0), c.epoch, c.size, c.root, c.signed_at, s.refusal,
       s.remembered_epoch, s.remembered_size
FROM (SELECT 1) AS one
LEFT JOIN LATERAL (
    SELECT tile_index * 256 + length(hashes) / 32 AS folded
    FROM ledger_tile
    WHERE tenant_id = %(tenant_id)s AND level = 0
    ORDER BY tile_index DESC
    LIMIT 1
) AS t ON true
LEFT JOIN LATERAL (
    SELECT epoch, size, root, signed_at
    FROM ledger_checkpoint
    WHERE tenant_id = %(tenant_id)s
    ORDER BY epoch DESC, size DESC
    LIMIT 1
) AS c ON true
LEFT JOIN ledger_signer s ON s.tenant_id = %(tenant_id)s

-- lock_tiles --
-- Only one transaction at a time changes a tenant's tiles. The lock lasts until commit.
SELECT pg_advisory_xact_lock(hashtextextended('ledger_tile ' || %(tenant_id)s::text, 0))

-- lock_signing --
-- Only one machine at a time signs a tenant's ledger. The lock lasts until commit.
SELECT pg_advisory_xact_lock(hashtextextended('ledger_sign ' || %(tenant_id)s::text, 0))

-- leaves_from --
-- The leaf hashes of the next batches, in the order of the log.
SELECT first_index, event_count, leaves
FROM batch
WHERE tenant_id = %(tenant_id)s AND first_index >= %(first_index)s AND event_count > 0
ORDER BY first_index
LIMIT %(batch_limit)s

-- grow_tiles --
-- Write tiles with their new width. Another worker may have folded more: tiles never shrink, and
-- their existing hashes never change.
INSERT INTO ledger_tile AS t (tenant_id, level, tile_index, hashes)
SELECT %(tenant_id)s, level, tile_index, hashes
FROM unnest(%(levels)b::integer[], %(indexes)b::bigint[], %(hashes)b::bytea[])
    AS u (level, tile_index, hashes)
ON CONFLICT (tenant_id, level, tile_index) DO UPDATE SET hashes = excluded.hashes
WHERE length(excluded.hashes) > length(t.hashes)
  AND substring(excluded.hashes FOR length(t.hashes)) = t.hashes

-- tiles --
-- Some tiles, each cut to the requested width.
SELECT t.level, t.tile_index, substring(t.hashes FOR wanted.width * 32)
FROM unnest(%(levels)b::integer[], %(indexes)b::bigint[], %(widths)b::integer[])
    AS wanted (level, tile_index, width)
JOIN ledger_tile t
  ON t.tenant_id = %(tenant_id)s
 AND t.level = wanted.level
 AND t.tile_index = wanted.tile_index

-- publish_checkpoint --
-- Store a signed checkpoint. Can be repeated.
INSERT INTO ledger_checkpoint (tenant_id, epoch, size, origin, root, note, signed_at, receipts)
VALUES (
    %(tenant_id)s, %(epoch)s, %(size)s, %(origin)s, %(root)s, %(note)s, %(signed_at)s,
    %(receipts)s::bytea[]
)
ON CONFLICT DO NOTHING

-- note_refusal --
-- Set the signer's refusal (NULL for none). A signer cannot change the refusal of one that remembers
-- a later checkpoint. Returns a row only if it has changed.
INSERT INTO ledger_signer AS s (tenant_id, refusal, since, remembered_epoch, remembered_size)
VALUES (%(tenant_id)s, %(refusal)s, %(now)s, %(remembered_epoch)s, %(remembered_size)s)
ON CONFLICT (tenant_id) DO UPDATE
SET refusal = excluded.refusal, since = excluded.since,
    remembered_epoch = excluded.remembered_epoch, remembered_size = excluded.remembered_size
WHERE s.refusal IS DISTINCT FROM excluded.refusal
  AND (s.refusal IS NULL
       OR (s.remembered_epoch, s.remembered_size)
          <= (excluded.remembered_epoch, excluded.remembered_size))
RETURNING 1

-- forget_tiles --
-- Delete the tiles. They are made from the log and can be made again. Runs as the owner, for a new
-- epoch.
DELETE FROM ledger_tile WHERE tenant_id = %(tenant_id)s

-- insert_own_batch --
-- Entries that the server itself adds.
INSERT INTO batch (
    tenant_id, batch_on, batch_id, received_at, first_index, event_count, body_sha256, answer,
    leaves, payload, is_own
)
VALUES (
    %(tenant_id)s, %(batch_on)s, %(batch_id)s, %(now)s, %(first_index)s, %(event_count)s,
    %(body_sha256)s, '{}',
    %(leaves)s, %(payload)s, true
)

-- note_entered --
-- Set the ledger indexes of actions that were entered.
UPDATE action AS a
SET ledger_index = u.ledger_index
FROM unnest(%(ids)b::uuid[], %(indexes)b::bigint[]) AS u (id, ledger_index)
WHERE a.tenant_id = %(tenant_id)s AND a.id = u.id

-- actions_out_of_order --
-- Actions that were entered long after later ones, with the time of the latest of those.
SELECT ledger_index, at, latest
FROM (
    SELECT ledger_index, at, max(at) OVER (ORDER BY ledger_index) AS latest
    FROM action
    WHERE tenant_id = %(tenant_id)s AND ledger_index IS NOT NULL
) AS entered
WHERE at < latest - %(tolerance)s
ORDER BY ledger_index
LIMIT %(row_limit)s

-- baseline_is_entered --
-- A row if the tenant's log has its baseline.
SELECT 1 FROM ledger_head WHERE tenant_id = %(tenant_id)s AND has_baseline

-- claim_baseline --
-- Returns a row for the one transaction that may append the baseline; others wait for it. Locks the
-- tenant's ledger head.
INSERT INTO ledger_head AS h (tenant_id, size, has_baseline)
VALUES (%(tenant_id)s, 0, true)
ON CONFLICT (tenant_id) DO UPDATE SET has_baseline = true
WHERE NOT h.has_baseline
RETURNING 1

-- held_calls_in_ranges --
-- How many calls that a hold covers have an event in ranges of ledger indexes. NULL: the hold does not
-- ask for it.
WITH held AS (
    SELECT i.invocation_id, i.start_batch_id, i.start_pos, i.end_batch_id, i.end_pos
    FROM invocation i
    WHERE i.tenant_id = %(tenant_id)s
      AND (%(trace_id)s::text IS NULL OR i.trace_id = %(trace_id)s)
      AND (%(case_id)s::text IS NULL OR i.case_id = %(case_id)s)
      AND (%(tool_name)s::text IS NULL OR i.tool_name = %(tool_name)s)
      AND (%(since)s::timestamptz IS NULL OR i.started_at >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR i.started_at < %(until)s)
), events AS (
    SELECT invocation_id, start_batch_id AS batch_id, start_pos AS pos FROM held
    UNION ALL
    SELECT invocation_id, end_batch_id, end_pos FROM held
)
SELECT count(DISTINCT e.invocation_id)
FROM unnest(%(begins)b::bigint[], %(ends)b::bigint[]) AS r (begin_index, end_index)
JOIN batch b ON b.tenant_id = %(tenant_id)s
    AND b.first_index < r.end_index
    AND b.first_index + b.event_count > r.begin_index
JOIN events e ON e.batch_id = b.batch_id
    AND b.first_index + e.pos >= r.begin_index
    AND b.first_index + e.pos < r.end_index

-- unlisted_calls_in_ranges --
-- How many calls have an event in ranges of ledger indexes and are not on the list of an erasure. A
-- span on the list may have been merged into another call since.
WITH erased AS (
    SELECT range_agg(int8range(begin_index, end_index)) AS indexes
    FROM unnest(%(begins)b::bigint[], %(ends)b::bigint[]) AS r (begin_index, end_index)
), touched AS (
    SELECT b.batch_id, b.first_index
    FROM erased e
    JOIN batch b ON b.tenant_id = %(tenant_id)s
     AND b.event_count > 0
     AND b.first_index < %(end_index)s
     AND b.first_index + b.event_count > %(first_index)s
     AND int8range(b.first_index, b.first_index + b.event_count) && e.indexes
), events AS (
    SELECT i.invocation_id, i.start_batch_id AS batch_id, i.start_pos AS pos
    FROM invocation i
    WHERE i.tenant_id = %(tenant_id)s
    UNION ALL
    SELECT i.invocation_id, i.end_batch_id, i.end_pos
    FROM invocation i
    WHERE i.tenant_id = %(tenant_id)s
    UNION ALL
    SELECT d.invocation_id, d.batch_id, d.pos
    FROM decision d
    WHERE d.tenant_id = %(tenant_id)s
), found AS (
    SELECT DISTINCT v.invocation_id
    FROM erased e
    CROSS JOIN touched t
    JOIN events v ON v.batch_id = t.batch_id
    WHERE t.first_index + v.pos <@ e.indexes
)
SELECT count(*)
FROM found f
WHERE f.invocation_id NOT IN (
    SELECT c.invocation_id
    FROM erasure_call c
    WHERE c.tenant_id = %(tenant_id)s AND c.erasure_id = %(erasure_id)s
    UNION ALL
    SELECT s.invocation_id
    FROM erasure_call c
    JOIN otlp_span s ON s.tenant_id = %(tenant_id)s
     AND s.span_uuid = c.invocation_id
     AND s.started_on BETWEEN (c.started_at AT TIME ZONE 'UTC')::date - 1
                          AND (c.started_at AT TIME ZONE 'UTC')::date + 1
    WHERE c.tenant_id = %(tenant_id)s
      AND c.erasure_id = %(erasure_id)s
      AND s.invocation_id IS NOT NULL
)

-- batches_received_after --
-- The first batches in ranges of ledger indexes that arrived at an instant or later.
SELECT b.first_index, b.received_at
FROM unnest(%(begins)b::bigint[], %(ends)b::bigint[]) AS r (begin_index, end_index)
JOIN batch b ON b.tenant_id = %(tenant_id)s
    AND b.first_index < r.end_index
    AND b.first_index + b.event_count > r.begin_index
WHERE b.received_at >= %(before)s
ORDER BY b.first_index
LIMIT %(row_limit)s
