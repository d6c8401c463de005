-- {{call_has_note}} --
-- Whether a note is about a call, its trace, its version, or a kind of violation that it has.
(call.invocation_id IN (
            SELECT n.invocation_id
            FROM note n
            WHERE n.tenant_id = %(tenant_id)s AND n.invocation_id IS NOT NULL
              AND TRUE /* named */
        )
        OR call.trace_id IN (
            SELECT n.trace_id
            FROM note n
            WHERE n.tenant_id = %(tenant_id)s AND n.about = 'trace' AND TRUE /* named */
        )
        OR EXISTS (
            SELECT FROM note n
            WHERE n.tenant_id = %(tenant_id)s AND n.about = 'version'
              AND n.tool_name = call.tool_name AND call.tool_version = ANY(n.tool_versions)
              AND TRUE /* named */
        )
        OR EXISTS (
            SELECT FROM note n
            JOIN violation
              ON violation.tenant_id = %(tenant_id)s
             AND violation.started_on BETWEEN %(first_day)s AND %(last_day)s
             AND violation.started_on = call.started_on
             AND violation.invocation_id = call.invocation_id
             AND violation.code = n.code
             AND violation.path_pattern = n.path
            WHERE n.tenant_id = %(tenant_id)s AND n.about = 'violation'
              AND n.tool_name = call.tool_name AND TRUE /* named */
        ))

-- known_notes --
-- Labels and assignees of notes, most frequent first, to complete a query.
SELECT label, assignee
FROM note
WHERE tenant_id = %(tenant_id)s
GROUP BY label, assignee
ORDER BY count(*) DESC, label, assignee
LIMIT 500
