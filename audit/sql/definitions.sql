-- definition_servers_known --
-- How many servers were seen, and when this one was first.
SELECT count(*), min(first_seen_at) FILTER (WHERE name = %(server)s)
FROM definition_server
WHERE tenant_id = %(tenant_id)s

-- see_server --
-- Count a list of a server. Returns whether it is the first one, and how many changes were entered
-- in this hour. Locks the server's row, so that the lists of one server wait for each other.
INSERT INTO definition_server AS s (
    tenant_id, name, first_seen_at, last_seen_at, list_count, hour_at, entry_count,
    unrecorded_count
)
VALUES (
    %(tenant_id)s, %(server)s, %(seen_at)s, %(seen_at)s, 1, %(hour_at)s, 0, 0
)
ON CONFLICT (tenant_id, name) DO UPDATE SET
    first_seen_at = least(s.first_seen_at, EXCLUDED.first_seen_at),
    last_seen_at = greatest(s.last_seen_at, EXCLUDED.last_seen_at),
    list_count = s.list_count + 1,
    hour_at = EXCLUDED.hour_at,
    entry_count = CASE WHEN s.hour_at = EXCLUDED.hour_at THEN s.entry_count ELSE 0 END
RETURNING list_count = 1, entry_count

-- count_server_changes --
-- Count what became of the changes of a list: an entry, or changes that were only counted.
UPDATE definition_server
SET entry_count = entry_count + %(entries)s, unrecorded_count = unrecorded_count + %(unrecorded)s
WHERE tenant_id = %(tenant_id)s AND name = %(server)s

-- definitions_in_force_at --
-- The digest that was in force of each of a server's tools; none for a tool that was not seen yet.
SELECT u.tool_name, c.digest
FROM unnest(%(tool_names)s::text[]) AS u (tool_name)
CROSS JOIN LATERAL (
    SELECT digest
    FROM definition_change
    WHERE tenant_id = %(tenant_id)s AND server = %(server)s AND tool_name = u.tool_name
      AND seen_at <= %(seen_at)s
    ORDER BY seen_at DESC, digest DESC
    LIMIT 1
) AS c

-- count_tools_of_server --
-- How many tools of a server have a row.
SELECT count(DISTINCT tool_name)
FROM definition_change
WHERE tenant_id = %(tenant_id)s AND server = %(server)s

-- server_changed_before --
-- A row if a definition of a server came into force before a moment.
SELECT 1 FROM definition_change
WHERE tenant_id = %(tenant_id)s AND server = %(server)s AND seen_at < %(seen_at)s
LIMIT 1

-- insert_definitions --
-- Store texts that are not stored yet. Returns their digests.
INSERT INTO definition (tenant_id, digest, content)
SELECT %(tenant_id)s, digest, content
FROM unnest(%(digests)s::text[], %(contents)s::text[]) AS u (digest, content)
ON CONFLICT (tenant_id, digest) DO NOTHING
RETURNING digest

-- see_definitions --
-- Count a sighting of each definition of a list. Returns the ids of their rows.
INSERT INTO served_definition AS s (
    tenant_id, id, server, tool_name, digest, first_seen_at, last_seen_at, sighting_count, state
)
SELECT %(tenant_id)s, id, %(server)s, tool_name, digest, %(seen_at)s, %(seen_at)s, 1, %(state)s
FROM unnest(%(ids)s::uuid[], %(tool_names)s::text[], %(digests)s::text[])
    AS u (id, tool_name, digest)
ON CONFLICT (tenant_id, server, tool_name, digest) DO UPDATE SET
    first_seen_at = least(s.first_seen_at, EXCLUDED.first_seen_at),
    last_seen_at = greatest(s.last_seen_at, EXCLUDED.last_seen_at),
    sighting_count = s.sighting_count + 1
RETURNING id

-- insert_definition_changes --
-- Write from when on definitions are in force. Returns the tools for which this was not known.
INSERT INTO definition_change (
    tenant_id, server, tool_name, seen_at, digest, server_version, client, client_version
)
SELECT %(tenant_id)s, %(server)s, tool_name, %(seen_at)s, digest, %(server_version)s, %(client)s,
       %(client_version)s
FROM unnest(%(tool_names)s::text[], %(digests)s::text[]) AS u (tool_name, digest)
ON CONFLICT (tenant_id, server, tool_name, seen_at, digest) DO NOTHING
RETURNING tool_name

-- note_definition_entry --
-- Note the entry of the ledger in which changes are.
UPDATE definition_change
SET ledger_index = %(ledger_index)s
WHERE tenant_id = %(tenant_id)s AND server = %(server)s AND seen_at = %(seen_at)s
  AND tool_name = ANY(%(tool_names)s::text[]) AND digest <> '' AND ledger_index IS NULL

-- {{served_columns}} --
-- The columns of a served definition on pages.
s.id, s.server, s.tool_name, s.digest, s.state, s.first_seen_at, s.last_seen_at, s.sighting_count,
       s.approved_at, s.approved_by, s.approval_reason, s.withdrawn_at, s.withdrawn_by,
       s.withdrawal_reason

-- served_tools --
-- The tools of all servers, each with what is in force now: from when on, and the definition, or
-- the last one that was recorded if it is unknown (''). Then how many calls of the tool started
-- since, if it is unapproved.
SELECT c.server, c.tool_name, c.digest, c.seen_at, c.server_version, {{served_columns}},
       CASE WHEN c.digest = '' OR s.state = 'pending' THEN (
           SELECT count(*)
           FROM (
               SELECT FROM invocation call
               WHERE call.tenant_id = %(tenant_id)s AND call.tool_name = c.tool_name
                 AND call.started_at >= c.seen_at
                 AND {{server_may_serve}}
               LIMIT %(count_limit)s
           ) AS calls
       ) ELSE 0 END
FROM (
    SELECT DISTINCT ON (server, tool_name) server, tool_name, digest, seen_at, server_version
    FROM definition_change
    WHERE tenant_id = %(tenant_id)s
      AND (server, tool_name) > (%(after_server)s, %(after_tool)s)
      AND (%(server)s = '' OR server = %(server)s)
      AND (%(tool)s = '' OR tool_name = %(tool)s)
    ORDER BY server, tool_name, seen_at DESC, digest DESC
) AS c
LEFT JOIN LATERAL (
    SELECT *
    FROM served_definition d
    WHERE d.tenant_id = %(tenant_id)s AND d.server = c.server AND d.tool_name = c.tool_name
    ORDER BY d.digest = c.digest DESC, d.last_seen_at DESC
    LIMIT 1
) AS s ON TRUE
WHERE NOT %(only_unapproved)s OR c.digest = '' OR s.state = 'pending'
ORDER BY c.server, c.tool_name
LIMIT %(row_limit)s

-- served_definition --
-- One definition with its text.
SELECT {{served_columns}}, d.content
FROM served_definition s
JOIN definition d ON d.tenant_id = %(tenant_id)s AND d.digest = s.digest
WHERE s.tenant_id = %(tenant_id)s AND s.id = %(id)s

-- served_before --
-- The definition that one is compared with by default: the last one of the tool that needed no
-- approval or has it, and was in force before.
SELECT {{served_columns}}, d.content
FROM served_definition s
JOIN definition d ON d.tenant_id = %(tenant_id)s AND d.digest = s.digest
WHERE s.tenant_id = %(tenant_id)s AND s.server = %(server)s AND s.tool_name = %(tool_name)s
  AND s.digest <> %(digest)s AND s.state <> 'pending'
ORDER BY s.first_seen_at < %(first_seen_at)s DESC, s.last_seen_at DESC
LIMIT 1

-- definition_history --
-- The newest changes of a tool of one server: what was in force from when on.
SELECT c.seen_at, c.digest, c.server_version, c.client, c.client_version, c.ledger_index, s.id,
       s.state, s.approved_at
FROM definition_change c
LEFT JOIN served_definition s
    ON s.tenant_id = %(tenant_id)s AND s.server = c.server AND s.tool_name = c.tool_name
    AND s.digest = c.digest
WHERE c.tenant_id = %(tenant_id)s AND c.server = %(server)s AND c.tool_name = %(tool_name)s
ORDER BY c.seen_at DESC, c.digest DESC
LIMIT %(row_limit)s

-- unapproved_use --
-- How many calls were made under a definition before it was approved; the first and the last.
WITH period AS (
    SELECT server, digest, seen_at, lead(seen_at) OVER (ORDER BY seen_at, digest) AS until
    FROM definition_change
    WHERE tenant_id = %(tenant_id)s AND server = %(server)s AND tool_name = %(tool_name)s
)
SELECT count(*), min(started_at), max(started_at)
FROM (
    SELECT call.started_at
    FROM period c
    JOIN invocation call
        ON call.tenant_id = %(tenant_id)s AND call.tool_name = %(tool_name)s
        AND call.started_at >= c.seen_at AND call.started_at < coalesce(c.until, 'infinity')
        AND call.started_at < coalesce(%(approved_at)s::timestamptz, 'infinity')
    WHERE c.digest = %(digest)s AND {{server_may_serve}}
      AND NOT EXISTS (
          SELECT FROM served_definition s
          WHERE s.tenant_id = %(tenant_id)s AND s.server = %(server)s
            AND s.tool_name = %(tool_name)s AND s.digest = %(digest)s
            AND multirange_contains_elem(s.approved_during, call.started_at)
      )
    LIMIT %(count_limit)s
) AS calls

-- approve_definition --
-- Approve a pending definition. Returns its id if it was pending.
UPDATE served_definition
SET state = 'approved', approved_at = %(now)s, approved_by = %(actor)s,
    approval_reason = %(reason)s
WHERE tenant_id = %(tenant_id)s AND id = %(id)s AND state = 'pending'
RETURNING id

-- withdraw_approval --
-- Make an approved definition pending again. Returns its id if it was approved.
UPDATE served_definition
SET state = 'pending', approved_during = approved_during
        + tstzmultirange(tstzrange(approved_at, greatest(%(now)s, approved_at))),
    approved_at = NULL, approved_by = NULL, approval_reason = NULL,
    withdrawn_at = %(now)s, withdrawn_by = %(actor)s, withdrawal_reason = %(reason)s
WHERE tenant_id = %(tenant_id)s AND id = %(id)s AND state = 'approved'
RETURNING id

-- definitions_of_server --
-- Some definitions of one server.
SELECT {{served_columns}}
FROM served_definition s
WHERE s.tenant_id = %(tenant_id)s AND s.server = %(server)s AND s.id = ANY(%(ids)s)
ORDER BY s.tool_name, s.id

-- {{server_may_serve}} --
-- Whether the server of a definition `c` may be that of the call `call`. A call that names its MCP
-- server is of that one alone, if it is known to serve the tool; the version may follow the name.
(call.mcp_server IS NULL
            OR starts_with(call.mcp_server || ' ', c.server || ' ')
            OR NOT EXISTS (
                SELECT FROM definition_change o
                WHERE o.tenant_id = %(tenant_id)s
                  AND o.tool_name = call.tool_name
                  AND o.seen_at <= call.started_at
                  AND starts_with(call.mcp_server || ' ', o.server || ' ')
            ))

-- {{definition_was_in_force}} --
-- Whether a definition `c` was in force on its server when the call `call` started, and that server
-- may be that of the call.
c.tenant_id = %(tenant_id)s
            AND c.tool_name = call.tool_name
            AND c.seen_at <= call.started_at
            AND {{server_may_serve}}
            AND NOT EXISTS (
                SELECT FROM definition_change n
                WHERE n.tenant_id = %(tenant_id)s
                  AND n.server = c.server
                  AND n.tool_name = c.tool_name
                  AND n.seen_at <= call.started_at
                  AND (n.seen_at, n.digest) > (c.seen_at, c.digest)
            )

-- {{call_is_unapproved}} --
-- Whether a server's definition of a call's tool was unapproved or unknown when the call started.
EXISTS (
          SELECT FROM definition_change c
          LEFT JOIN served_definition s
              ON s.tenant_id = %(tenant_id)s AND s.server = c.server
              AND s.tool_name = c.tool_name AND s.digest = c.digest
          WHERE (s.state IS NULL OR s.state = 'pending'
                 OR coalesce(s.approved_at > call.started_at, FALSE))
            AND NOT coalesce(multirange_contains_elem(s.approved_during, call.started_at), FALSE)
            AND {{definition_was_in_force}}
      )

-- {{call_has_hint}} --
-- Whether the definition of a call's tool says so: as served when the call started (`saying`). If
-- none of these definitions has a hint (`stating`), that in the registry (`declared`).
(EXISTS (
            SELECT FROM definition_change c
            WHERE c.digest = ANY(%(saying)s::text[]) AND {{definition_was_in_force}}
        )
        OR (call.tool_name = ANY(%(declared)s::text[])
            AND NOT EXISTS (
                SELECT FROM definition_change c
                WHERE c.digest = ANY(%(stating)s::text[]) AND {{definition_was_in_force}}
            )))

-- hinting_definitions --
-- Definitions that may state one of MCP's hints; `digests` are those to look at, all without.
SELECT digest, content
FROM definition
WHERE tenant_id = %(tenant_id)s
  AND content ~ '"(readOnly|destructive|idempotent|openWorld)Hint"'
  AND (%(digests)s::text[] IS NULL OR digest = ANY(%(digests)s::text[]))

-- unapproved_use_in --
-- How many calls of a range were made under unapproved or unknown definitions; the first and the
-- last. Only calls of tools that have such definitions are read.
SELECT count(*), min(started_at), max(started_at)
FROM (
    SELECT call.started_at
    FROM (
        SELECT tool_name FROM served_definition
        WHERE tenant_id = %(tenant_id)s AND state <> 'first'
        UNION
        SELECT tool_name FROM definition_change WHERE tenant_id = %(tenant_id)s AND digest = ''
    ) AS changed
    JOIN invocation call
        ON call.tenant_id = %(tenant_id)s AND call.tool_name = changed.tool_name
    WHERE call.started_on BETWEEN %(first_day)s AND %(last_day)s
      AND call.started_at >= %(start)s AND call.started_at < %(end)s
      AND {{call_is_unapproved}}
    LIMIT %(count_limit)s
) AS calls

-- definitions_with_digest --
-- The definitions of a tool that have these digests: of whichever server, the last one seen.
SELECT DISTINCT ON (digest) digest, id
FROM served_definition
WHERE tenant_id = %(tenant_id)s AND tool_name = %(tool_name)s AND digest = ANY(%(digests)s)
ORDER BY digest, last_seen_at DESC, id

-- definitions_of_call --
-- The definition of a tool that was in force on each server when a call started.
SELECT DISTINCT ON (c.server) c.server, c.digest, c.seen_at, s.id,
       (s.state IS NULL OR s.state = 'pending'
        OR coalesce(s.approved_at > %(started_at)s, FALSE))
       AND NOT coalesce(
           multirange_contains_elem(s.approved_during, %(started_at)s::timestamptz), FALSE
       )
FROM definition_change c
LEFT JOIN served_definition s
    ON s.tenant_id = %(tenant_id)s AND s.server = c.server AND s.tool_name = c.tool_name
    AND s.digest = c.digest
WHERE c.tenant_id = %(tenant_id)s AND c.tool_name = %(tool_name)s AND c.seen_at <= %(started_at)s
ORDER BY c.server, c.seen_at DESC, c.digest DESC
LIMIT %(row_limit)s
