-- {{approval}} --
-- Approvals, one row each: a request with its answer, or what a person approved unasked. A request
-- is the first decision `awaiting` about a call, or the first one after another decision; its
-- answer is the next other decision. Of both, only those of the range are read.
SELECT d.started_on, d.decision_id, d.decided_at, d.decision = 'awaiting' AS is_request,
       d.invocation_id, d.tool_name, d.tool_version, d.trace_id, d.tool_call_id,
       CASE WHEN d.decision = 'awaiting' THEN d.by_kind END AS policy_kind,
       CASE WHEN d.decision = 'awaiting' THEN d.by_id END AS policy_id,
       CASE WHEN d.decision = 'awaiting' THEN d.by_name END AS policy_name,
       answer.decided_at AS answered_at, answer.decision AS answer, answer.by_kind, answer.by_id,
       answer.by_name, answer.definition_digest,
       (SELECT r.requested_by
        FROM decision r
        WHERE r.tenant_id = %(tenant_id)s
          AND r.invocation_id = d.invocation_id
          AND r.requested_by IS NOT NULL
        ORDER BY r.decided_at, r.decision_id
        LIMIT 1) AS requested_by,
       coalesce(answer.decision = 'approved' AND answer.by_kind = 'person', FALSE)
           AND EXISTS (
               SELECT FROM decision r
               WHERE r.tenant_id = %(tenant_id)s
                 AND r.invocation_id = d.invocation_id
                 AND r.requested_by = answer.by_id
           ) AS is_self_approved
FROM decision d
LEFT JOIN LATERAL (
    SELECT a.decided_at, a.decision, a.by_kind, a.by_id, a.by_name, a.definition_digest
    FROM decision a
    WHERE a.tenant_id = %(tenant_id)s
      AND a.invocation_id = d.invocation_id
      AND a.started_on >= d.started_on
      AND (a.decided_at, a.decision_id) >= (d.decided_at, d.decision_id)
      AND a.decision <> 'awaiting'
    ORDER BY a.decided_at, a.decision_id
    LIMIT 1
) AS answer ON TRUE
WHERE d.tenant_id = %(tenant_id)s
  AND d.started_on BETWEEN %(first_day)s AND %(last_day)s
  AND d.decided_at >= %(start)s
  AND d.decided_at < %(end)s
  AND (d.decision = 'awaiting' OR d.by_kind = 'person')
  AND (d.decision = 'awaiting' OR d.decision = 'approved')
  AND (%(tool)s::text IS NULL OR d.tool_name = %(tool)s)
  AND NOT coalesce((
      SELECT p.decision = 'awaiting'
      FROM decision p
      WHERE p.tenant_id = %(tenant_id)s
        AND p.invocation_id = d.invocation_id
        AND p.started_on <= d.started_on
        AND (p.decided_at, p.decision_id) < (d.decided_at, d.decision_id)
      ORDER BY p.decided_at DESC, p.decision_id DESC
      LIMIT 1
  ), FALSE)

-- approvals --
-- The newest approvals of a range before a cursor. A request without an answer whose call ran is
-- marked as such. NULL means no condition.
SELECT d.started_on, d.decision_id, d.decided_at, d.is_request, d.invocation_id, d.tool_name,
       d.tool_version, d.trace_id, d.policy_kind, d.policy_id, d.policy_name, d.answered_at,
       d.answer, d.by_kind, d.by_id, d.by_name, d.definition_digest, d.requested_by,
       d.is_self_approved, d.answer IS NULL AND {{decided_call_ran}}
FROM ({{approval}}) AS d
WHERE d.decided_at <= %(at)s
  AND (d.decided_at, d.decision_id) < (%(at)s, %(id)s)
  AND (%(policy)s::text IS NULL OR %(policy)s IN (d.policy_id, d.policy_name))
  AND (%(by)s::text IS NULL OR %(by)s IN (d.by_id, d.by_name))
  AND (%(requested_by)s::text IS NULL OR d.requested_by = %(requested_by)s)
  AND (NOT %(only_self)s OR d.is_self_approved)
  AND (NOT %(only_waiting)s OR (d.answer IS NULL AND NOT {{decided_call_ran}}))
ORDER BY d.decided_at DESC, d.decision_id DESC
LIMIT %(limit)s
