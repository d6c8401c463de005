-- expired_batches --
-- The next batches in the order of the log, up to the first one that has not expired.
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
-- Blank the payloads of some batches, but not those of the server's own entries. Runs as the
-- keeper.
UPDATE batch b SET payload = NULL
FROM unnest(%(days)s::date[], %(batch_ids)s::uuid[]) AS u (batch_on, batch_id)
WHERE b.tenant_id = %(tenant_id)s
  AND b.batch_on = u.batch_on
  AND b.batch_id = u.batch_id
  AND NOT b.is_own

-- note_erased_to --
-- Store how far retention has come. Runs as the keeper.
UPDATE tenant_setting SET erased_to = %(erased_to)s WHERE tenant_id = %(tenant_id)s

-- expired_refused --
-- The next expired rejected lines that still have their text.
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
-- Blank rejected lines. Their resolution stays. Runs as the keeper.
UPDATE rejected_event r SET raw = ''
WHERE r.tenant_id = %(tenant_id)s AND r.id = ANY(%(ids)s)

-- {{within_expired_days}} --
-- The tenant's expired days, from a given day on.
tenant_id = %(tenant_id)s AND started_on >= %(from)s AND started_on < %(before)s

-- {{call_was_left}} --
-- For other rows of a call: whether the call was kept.
EXISTS (
    SELECT FROM invocation c
    WHERE c.tenant_id = %(tenant_id)s
      AND c.started_on = %(day)s
      AND c.invocation_id = i.invocation_id
)

-- {{call_of_trace_was_left}} --
-- For traces: whether a call of the trace, or a decision about one, was kept.
(EXISTS (
    SELECT FROM invocation c
    WHERE c.tenant_id = %(tenant_id)s
      AND c.started_on = %(day)s
      AND c.trace_id = i.trace_id
) OR EXISTS (
    SELECT FROM decision d
    WHERE d.tenant_id = %(tenant_id)s
      AND d.started_on = %(day)s
      AND d.trace_id = i.trace_id
))

-- {{call_of_day_was_left}} --
-- For sums of a day: whether any call of the day was kept.
EXISTS (
    SELECT FROM invocation c WHERE c.tenant_id = %(tenant_id)s AND c.started_on = %(day)s
)

-- oldest_day_of_calls --
-- The first day, from a given day on, with calls of the tenant.
SELECT min(started_on) FROM invocation WHERE {{within_expired_days}}

-- delete_day_of_calls --
-- Delete rows of one day, and count them. A day is one partition, in which a ctid identifies one
-- row. Runs as the owner.
WITH gone AS (
    DELETE FROM invocation
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND ctid = ANY(ARRAY(
          SELECT i.ctid FROM invocation i
          WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {{call_is_held}}
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone

-- oldest_day_of_decisions --
-- As oldest_day_of_calls, for this table.
SELECT min(started_on)
FROM decision
WHERE tenant_id = %(tenant_id)s AND started_on >= %(from)s AND started_on < %(before)s

-- delete_day_of_decisions --
-- As delete_day_of_calls, for this table.
WITH gone AS (
    DELETE FROM decision
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND ctid = ANY(ARRAY(
          SELECT d.ctid FROM decision d
          WHERE d.tenant_id = %(tenant_id)s AND d.started_on = %(day)s AND NOT {{decision_is_held}}
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone

-- oldest_day_of_violations --
-- As oldest_day_of_calls, for this table.
SELECT min(started_on) FROM violation WHERE {{within_expired_days}}

-- delete_day_of_violations --
-- As delete_day_of_calls, for this table.
WITH gone AS (
    DELETE FROM violation
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND ctid = ANY(ARRAY(
          SELECT i.ctid FROM violation i
          WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {{call_was_left}}
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone

-- oldest_day_of_units --
-- As oldest_day_of_calls, for this table.
SELECT min(started_on) FROM call_units WHERE {{within_expired_days}}

-- delete_day_of_units --
-- As delete_day_of_calls, for this table.
WITH gone AS (
    DELETE FROM call_units
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND ctid = ANY(ARRAY(
          SELECT i.ctid FROM call_units i
          WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {{call_was_left}}
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone

-- oldest_day_of_cases --
-- As oldest_day_of_calls, for this table.
SELECT min(started_on) FROM tool_regression_case WHERE {{within_expired_days}}

-- delete_day_of_cases --
-- As delete_day_of_calls, for this table, which has no partitions.
WITH gone AS (
    DELETE FROM tool_regression_case
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND (set_id, invocation_id) IN (
          SELECT i.set_id, i.invocation_id FROM tool_regression_case i
          WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {{call_was_left}}
          LIMIT %(row_limit)s
      )
    RETURNING 1
)
SELECT count(*) FROM gone

-- oldest_day_of_usage --
-- As oldest_day_of_calls, for this table.
SELECT min(started_on) FROM llm_usage WHERE {{within_expired_days}}

-- delete_day_of_usage --
-- As delete_day_of_calls, for this table.
WITH gone AS (
    DELETE FROM llm_usage
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND ctid = ANY(ARRAY(
          SELECT i.ctid FROM llm_usage i
          WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {{call_of_trace_was_left}}
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone

-- oldest_day_of_traces --
-- As oldest_day_of_calls, for this table.
SELECT min(started_on) FROM trace WHERE {{within_expired_days}}

-- delete_day_of_traces --
-- As delete_day_of_calls, for this table.
WITH gone AS (
    DELETE FROM trace
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND ctid = ANY(ARRAY(
          SELECT i.ctid FROM trace i
          WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {{call_of_trace_was_left}}
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone

-- oldest_day_of_quarters --
-- As oldest_day_of_calls, for this table.
SELECT min(started_on) FROM quarter_rollup WHERE {{within_expired_days}}

-- delete_day_of_quarters --
-- As delete_day_of_calls, for this table.
WITH gone AS (
    DELETE FROM quarter_rollup
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND ctid = ANY(ARRAY(
          SELECT i.ctid FROM quarter_rollup i
          WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {{call_of_day_was_left}}
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone

-- oldest_day_of_errors --
-- As oldest_day_of_calls, for this table.
SELECT min(started_on) FROM error_rollup WHERE {{within_expired_days}}

-- delete_day_of_errors --
-- As delete_day_of_calls, for this table.
WITH gone AS (
    DELETE FROM error_rollup
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND ctid = ANY(ARRAY(
          SELECT i.ctid FROM error_rollup i
          WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {{call_of_day_was_left}}
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone

-- oldest_day_of_spans --
-- As oldest_day_of_calls, for this table.
SELECT min(started_on) FROM otlp_span WHERE {{within_expired_days}}

-- delete_day_of_spans --
-- As delete_day_of_calls, for this table.
WITH gone AS (
    DELETE FROM otlp_span
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND ctid = ANY(ARRAY(
          SELECT i.ctid FROM otlp_span i
          WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {{call_of_day_was_left}}
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone

-- oldest_day_of_violation_days --
-- As oldest_day_of_calls, for this table.
SELECT min(started_on) FROM violation_day WHERE {{within_expired_days}}

-- delete_day_of_violation_days --
-- As delete_day_of_calls, for this table.
WITH gone AS (
    DELETE FROM violation_day
    WHERE tenant_id = %(tenant_id)s
      AND started_on = %(day)s
      AND ctid = ANY(ARRAY(
          SELECT i.ctid FROM violation_day i
          WHERE i.tenant_id = %(tenant_id)s AND i.started_on = %(day)s AND NOT {{call_of_day_was_left}}
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone

-- delete_expired_rollups --
-- Delete the counters, which are few, of days without any kept call. Returns how many calls they
-- counted. Runs as the owner. The day is compared twice, so that no later partition is read: with ten
-- million calls, that took longer than five minutes.
WITH gone AS (
    DELETE FROM rollup r
    WHERE r.tenant_id = %(tenant_id)s
      AND r.started_on < %(before)s
      AND NOT EXISTS (
          SELECT FROM invocation c
          WHERE c.tenant_id = %(tenant_id)s
            AND c.started_on = r.started_on AND c.started_on < %(before)s
      )
    RETURNING started_count
)
SELECT coalesce(sum(started_count), 0)::bigint FROM gone
