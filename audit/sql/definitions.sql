-- definition_servers_known --
-- How many servers were seen, and whether this one was.
SELECT count(*), coalesce(bool_or(name = %(server)s), FALSE)
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

-- insert_definitions --
-- Store texts that are not stored yet.
INSERT INTO definition (tenant_id, digest, content)
SELECT %(tenant_id)s, digest, content
FROM unnest(%(digests)s::text[], %(contents)s::text[]) AS u (digest, content)
ON CONFLICT (tenant_id, digest) DO NOTHING

-- see_definitions --
-- Count a sighting of each definition of a list.
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
