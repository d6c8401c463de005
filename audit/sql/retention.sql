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

-- {{within_expired_days}} --
-- Of the tenant's days, those from one on that are expired.
tenant_id = %(tenant_id)s AND started_on >= %(from)s AND started_on < %(before)s

-- {{call_was_left}} --
-- Of a call's other rows: those whose call was left.
EXISTS (
    SELECT FROM invocation c
    WHERE c.tenant_id = %(tenant_id)s
      AND c.started_on = %(day)s
      AND c.invocation_id = i.invocation_id
)

-- {{call_of_trace_was_left}} --
-- Of traces: those of which a call was left.
EXISTS (
    SELECT FROM invocation c
    WHERE c.tenant_id = %(tenant_id)s
      AND c.started_on = %(day)s
      AND c.trace_id = i.trace_id
)

-- {{call_of_day_was_left}} --
-- Of what sums up a day: all, as long as a call of it was left.
EXISTS (
    SELECT FROM invocation c WHERE c.tenant_id = %(tenant_id)s AND c.started_on = %(day)s
)

-- oldest_day_of_calls --
-- The first day, from some day on, of which the tenant has calls.
SELECT min(started_on) FROM invocation WHERE {{within_expired_days}}

-- delete_day_of_calls --
-- Deletes rows of one day, hence of one partition, in which a ctid is one row's, and counts them. As
-- the owner.
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

-- oldest_day_of_violations --
-- The same of this table.
SELECT min(started_on) FROM violation WHERE {{within_expired_days}}

-- delete_day_of_violations --
-- The same of this table.
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

-- oldest_day_of_traces --
-- The same of this table.
SELECT min(started_on) FROM trace WHERE {{within_expired_days}}

-- delete_day_of_traces --
-- The same of this table.
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
-- The same of this table.
SELECT min(started_on) FROM quarter_rollup WHERE {{within_expired_days}}

-- delete_day_of_quarters --
-- The same of this table.
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
-- The same of this table.
SELECT min(started_on) FROM error_rollup WHERE {{within_expired_days}}

-- delete_day_of_errors --
-- The same of this table.
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
-- The same of this table.
SELECT min(started_on) FROM otlp_span WHERE {{within_expired_days}}

-- delete_day_of_spans --
-- The same of this table.
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
-- The same of this table.
SELECT min(started_on) FROM violation_day WHERE {{within_expired_days}}

-- delete_day_of_violation_days --
-- The same of this table.
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
