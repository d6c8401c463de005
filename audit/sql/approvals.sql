-- approvals --
-- The newest approvals of a range before a cursor, one row each: a request with its answer, or what
-- a person approved without a request. A request is the first decision `awaiting` about a call, or the first
-- one after another decision; its answer is the next other decision, of any day. A request without
-- an answer whose call ran is marked as such. NULL means no condition.
--
-- All decisions of these calls are read at once: one search for each call and day took 90 s for
-- 21,000 requests of 400 days.
WITH asked AS (
    SELECT DISTINCT d.invocation_id
    FROM decision d
    WHERE d.tenant_id = %(tenant_id)s
      AND d.started_on BETWEEN %(first_day)s AND %(last_day)s
      AND d.decided_at >= %(start)s
      AND d.decided_at < %(end)s
      AND d.decided_at <= %(at)s
      AND d.decision IN ('awaiting', 'approved')
      AND (d.decision = 'awaiting' OR d.by_kind = 'person')
      AND (NOT %(only_waiting)s OR d.decision = 'awaiting')
      AND (%(tool)s::text IS NULL OR d.tool_name = %(tool)s)
), decided AS (
    SELECT d.*,
           lag(d.decision) OVER (
               PARTITION BY d.invocation_id ORDER BY d.decided_at, d.decision_id
           ) AS previous,
           array_agg(d.requested_by) FILTER (WHERE d.requested_by IS NOT NULL) OVER (
               PARTITION BY d.invocation_id ORDER BY d.decided_at, d.decision_id
               ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
           ) AS requesters
    FROM asked
    JOIN decision d ON d.tenant_id = %(tenant_id)s AND d.invocation_id = asked.invocation_id
), step AS (
    SELECT s.*,
           lead(s.decided_at) OVER step AS next_at,
           lead(s.decision) OVER step AS next_decision,
           lead(s.by_kind) OVER step AS next_kind,
           lead(s.by_id) OVER step AS next_id,
           lead(s.by_name) OVER step AS next_name,
           lead(s.definition_digest) OVER step AS next_digest
    FROM decided s
    WHERE s.decision <> 'awaiting' OR s.previous IS DISTINCT FROM 'awaiting'
    WINDOW step AS (PARTITION BY s.invocation_id ORDER BY s.decided_at, s.decision_id)
), approval AS (
    SELECT s.started_on, s.decision_id, s.decided_at, s.decision = 'awaiting' AS is_request,
           s.invocation_id, s.tool_name, s.tool_version, s.trace_id, s.tool_call_id,
           CASE WHEN s.decision = 'awaiting' THEN s.by_kind END AS policy_kind,
           CASE WHEN s.decision = 'awaiting' THEN s.by_id END AS policy_id,
           CASE WHEN s.decision = 'awaiting' THEN s.by_name END AS policy_name,
           CASE WHEN s.decision = 'awaiting' THEN s.next_at ELSE s.decided_at END AS answered_at,
           CASE WHEN s.decision = 'awaiting' THEN s.next_decision ELSE s.decision END AS answer,
           CASE WHEN s.decision = 'awaiting' THEN s.next_kind ELSE s.by_kind END AS by_kind,
           CASE WHEN s.decision = 'awaiting' THEN s.next_id ELSE s.by_id END AS by_id,
           CASE WHEN s.decision = 'awaiting' THEN s.next_name ELSE s.by_name END AS by_name,
           CASE WHEN s.decision = 'awaiting' THEN s.next_digest ELSE s.definition_digest END
               AS definition_digest,
           s.requesters
    FROM step s
    WHERE s.decision = 'awaiting'
       OR (s.decision = 'approved' AND s.by_kind = 'person'
           AND s.previous IS DISTINCT FROM 'awaiting')
), judged AS MATERIALIZED (
    SELECT d.*, d.answer IS NULL AND {{decided_call_ran}} AS has_run,
           coalesce(d.answer = 'approved' AND d.by_kind = 'person'
                    AND d.by_id = ANY(d.requesters), FALSE) AS is_self_approved
    FROM approval d
    WHERE d.decided_at >= %(start)s
      AND d.decided_at < %(end)s
      AND (d.decided_at, d.decision_id) < (%(at)s, %(id)s)
      AND (%(tool)s::text IS NULL OR d.tool_name = %(tool)s)
      AND (%(policy)s::text IS NULL OR %(policy)s IN (d.policy_id, d.policy_name))
      AND (%(by)s::text IS NULL OR %(by)s IN (d.by_id, d.by_name))
      AND (%(requested_by)s::text IS NULL OR d.requesters[1] = %(requested_by)s)
      AND (NOT %(only_waiting)s OR (d.is_request AND d.answer IS NULL))
)
SELECT started_on, decision_id, decided_at, is_request, invocation_id, tool_name, tool_version,
       trace_id, policy_kind, policy_id, policy_name, answered_at, answer, by_kind, by_id, by_name,
       definition_digest, requesters[1], is_self_approved, has_run
FROM judged
WHERE (NOT %(only_self)s OR is_self_approved)
  AND (NOT %(only_waiting)s OR NOT has_run)
ORDER BY decided_at DESC, decision_id DESC
LIMIT %(limit)s
