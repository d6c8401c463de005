-- first_steps --
-- Which of the first steps a tenant has done, and its newest call. Each is one look into an index.
SELECT keys.*,
       EXISTS (SELECT FROM tool_version WHERE tenant_id = %(tenant_id)s),
       EXISTS (SELECT FROM alert_rule WHERE tenant_id = %(tenant_id)s),
       EXISTS (
           SELECT FROM membership
           WHERE tenant_id = %(tenant_id)s AND NOT is_service AND user_id <> %(user_id)s
       ) OR EXISTS (
           SELECT FROM invitation
           WHERE tenant_id = %(tenant_id)s AND revoked_at IS NULL AND accepted_at IS NULL
             AND expires_at > %(now)s
       ),
       newest.*
FROM (
    SELECT coalesce(bool_or(revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s)), false),
           coalesce(bool_or(last_used_at IS NOT NULL), false)
    FROM api_key
    WHERE tenant_id = %(tenant_id)s AND 'ingest' = ANY (scopes)
) AS keys (can_send, has_sent)
LEFT JOIN (
    SELECT tool_name, trace_id, invocation_id, started_on, started_at
    FROM invocation
    WHERE tenant_id = %(tenant_id)s
    ORDER BY started_at DESC, invocation_id DESC
    LIMIT 1
) AS newest ON true
