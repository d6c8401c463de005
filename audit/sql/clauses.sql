-- clause_orphans --
-- Ends without a start, of calls that started in a range: at most so many.
SELECT count(*)
FROM (
    SELECT
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND started_at >= %(start)s
      AND started_at < %(end)s
      AND start_batch_id IS NULL
    LIMIT %(limit)s
) AS orphans

-- clause_checkpoints --
-- Checkpoints signed in a range: how many, and the last one.
SELECT count(*), max(signed_at)
FROM ledger_checkpoint
WHERE tenant_id = %(tenant_id)s AND signed_at >= %(start)s AND signed_at < %(end)s

-- clause_witnesses --
-- What witnesses answered in a range, by outcome.
SELECT outcome, count(*)
FROM witness_answer
WHERE tenant_id = %(tenant_id)s
  AND id >= %(first_id)s
  AND at >= %(start)s
  AND at < %(end)s
GROUP BY outcome

-- clause_check --
-- The last check of the whole ledger that ended, and what it found.
SELECT finished_at, size, finding_count
FROM ledger_check
WHERE tenant_id = %(tenant_id)s AND state IN ('passed', 'failed')
ORDER BY id DESC
LIMIT 1

-- clause_oldest_payload --
-- When the first events arrived whose payloads retention has not reached.
SELECT received_at
FROM batch
WHERE tenant_id = %(tenant_id)s
  AND first_index >= %(erased_to)s
  AND payload IS NOT NULL
  AND NOT is_own
ORDER BY first_index
LIMIT 1

-- clause_oldest_call --
-- The first UTC day of which the index has calls.
SELECT min(started_on) FROM rollup WHERE tenant_id = %(tenant_id)s

-- clause_acts --
-- Actions of a range with some verbs, by verb; and in the row without one, how many people and
-- programs did them.
SELECT verb, count(*), count(DISTINCT user_name)
FROM action
WHERE tenant_id = %(tenant_id)s
  AND at >= %(start)s
  AND at < %(end)s
  AND verb = ANY(%(verbs)s)
GROUP BY GROUPING SETS ((verb), ())

-- clause_answers --
-- The median of the seconds until a person acknowledged or resolved an alert, of those of a range.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM answered_at - opened_at))
FROM (
    SELECT opened_at,
           least(
               acknowledged_at, CASE WHEN resolved_by <> %(server)s THEN resolved_at END
           ) AS answered_at
    FROM alert
    WHERE tenant_id = %(tenant_id)s AND held_from >= %(start)s AND held_from < %(end)s
) AS answered
WHERE answered_at IS NOT NULL

-- clause_messages --
-- Messages of a range to channels of alerts, by what became of them.
SELECT state, count(*)
FROM alert_delivery
WHERE tenant_id = %(tenant_id)s
  AND id >= %(first_id)s
  AND created_at >= %(start)s
  AND created_at < %(end)s
GROUP BY state

-- clause_counts --
-- Single counts: rules that watch, streams that send, holds, erasures, incidents, samples.
SELECT
    (SELECT count(id) FROM alert_rule WHERE tenant_id = %(tenant_id)s AND is_enabled),
    (SELECT count(id) FROM stream WHERE tenant_id = %(tenant_id)s AND paused_at IS NULL),
    (SELECT count(id) FROM legal_hold WHERE tenant_id = %(tenant_id)s AND released_at IS NULL),
    (
        SELECT count(id) FROM legal_hold
        WHERE tenant_id = %(tenant_id)s AND set_at >= %(start)s AND set_at < %(end)s
    ),
    (
        SELECT coalesce(sum(erased_calls), 0)::bigint FROM erasure
        WHERE tenant_id = %(tenant_id)s AND confirmed_at >= %(start)s AND confirmed_at < %(end)s
    ),
    (
        SELECT count(id) FROM incident
        WHERE tenant_id = %(tenant_id)s AND created_at >= %(start)s AND created_at < %(end)s
    ),
    (
        SELECT count(id) FROM audit_sample
        WHERE tenant_id = %(tenant_id)s AND reviewed_at >= %(start)s AND reviewed_at < %(end)s
    ),
    (
        SELECT coalesce(sum(size), 0)::bigint FROM audit_sample
        WHERE tenant_id = %(tenant_id)s AND reviewed_at >= %(start)s AND reviewed_at < %(end)s
    ),
    (
        SELECT count(id) FROM served_definition
        WHERE tenant_id = %(tenant_id)s AND state = 'pending'
    ),
    (
        SELECT count(digest) FROM definition_change
        WHERE tenant_id = %(tenant_id)s AND seen_at >= %(start)s AND seen_at < %(end)s
    )
