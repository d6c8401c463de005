-- producers_lately --
-- Producers that sent something since an instant, latest first, after a cursor: first and last
-- sequence number, how many events are stored, and the declared gaps. Also the number of all
-- producers, on any page.
SELECT p.producer_id, p.first_seq, p.last_seq, p.event_count, p.last_heard_at,
       array(
           SELECT ARRAY[g.from_seq, g.to_seq]
           FROM gap g
           WHERE g.tenant_id = %(tenant_id)s AND g.producer_id = p.producer_id
           ORDER BY g.from_seq
           LIMIT 1000
       ),
       p.producers, p.heard_lately
FROM (
    SELECT producer_id, first_seq, last_seq, event_count, last_heard_at,
           count(*) OVER () AS producers,
           count(*) FILTER (WHERE last_heard_at >= %(silent_since)s) OVER () AS heard_lately
    FROM producer
    WHERE tenant_id = %(tenant_id)s
      AND last_heard_at >= %(since)s
) AS p
WHERE p.last_heard_at < %(at)s
   OR (p.last_heard_at = %(at)s AND p.producer_id > %(id)s)
ORDER BY p.last_heard_at DESC, p.producer_id
LIMIT %(limit)s

-- gaps_between --
-- Losses that producers declared in a range, by reason.
SELECT reason, sum(lost_count)::bigint, count(DISTINCT producer_id)
FROM gap
WHERE tenant_id = %(tenant_id)s
  AND heard_at >= %(since)s
  AND heard_at < %(until)s
GROUP BY reason
ORDER BY 2 DESC, reason
LIMIT 20
