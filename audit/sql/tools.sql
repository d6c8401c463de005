-- called_tools --
-- Tools by their number of calls since an hour, from the counters alone.
SELECT tool_name, sum(started_count)::bigint, sum(failed_count)::bigint, max(hour_at)
FROM rollup
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_day)s AND %(last_day)s
  AND hour_at >= %(since)s
GROUP BY tool_name

-- current_meta --
-- The meta of a tool's current version; no row if no version of this tool was published.
SELECT v.meta
FROM tool t
LEFT JOIN tool_version v
    ON v.tenant_id = %(tenant_id)s AND v.tool_id = t.id AND v.number = t.current_number
WHERE t.tenant_id = %(tenant_id)s
  AND t.name = %(tool_name)s
  AND t.latest_number > 0

-- note_tools --
-- Store the tool names of calls since a day; the first time, of all days. A tool is seen, too, if
-- all its calls were refused.
INSERT INTO observed_tool (tenant_id, tool_name, first_seen_at, last_seen_at)
SELECT %(tenant_id)s, tool_name, min(hour_at), max(hour_at)
FROM (
    SELECT started_on, tool_name, hour_at
    FROM rollup
    WHERE tenant_id = %(tenant_id)s
    UNION ALL
    SELECT started_on, tool_name, date_trunc('hour', decided_at)
    FROM decision
    WHERE tenant_id = %(tenant_id)s
) AS seen
WHERE started_on <= %(last_day)s
  AND started_on >= CASE
      WHEN EXISTS (SELECT FROM observed_tool WHERE tenant_id = %(tenant_id)s) THEN %(first_day)s
      ELSE %(oldest_day)s
  END
GROUP BY tool_name
ORDER BY tool_name
ON CONFLICT (tenant_id, tool_name) DO UPDATE
SET first_seen_at = least(observed_tool.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(observed_tool.last_seen_at, excluded.last_seen_at)
WHERE observed_tool.last_seen_at < excluded.last_seen_at
   OR observed_tool.first_seen_at > excluded.first_seen_at

-- versions_published --
-- The newest versions that were published in a range.
SELECT v.tool_id, t.name, v.number, v.created_at
FROM tool_version v
JOIN tool t ON t.tenant_id = %(tenant_id)s AND t.id = v.tool_id
WHERE v.tenant_id = %(tenant_id)s
  AND v.created_at >= %(start)s
  AND v.created_at < %(end)s
  AND (%(tool)s::text IS NULL OR t.name = %(tool)s)
ORDER BY v.created_at DESC
LIMIT %(limit)s

-- registered_tools --
-- Tools after a name, each with its current version and that version's state.
SELECT t.id, t.name, t.current_number, t.tags, t.owner, left(v.description, 120), v.trusted,
       v.ephemeral, v.on_collision, s.kind, d.id IS NOT NULL, o.last_seen_at
FROM tool t
LEFT JOIN tool_version v
    ON v.tenant_id = %(tenant_id)s AND v.tool_id = t.id AND v.number = t.current_number
LEFT JOIN tool_draft d ON d.tenant_id = %(tenant_id)s AND d.tool_id = t.id
LEFT JOIN observed_tool o ON o.tenant_id = %(tenant_id)s AND o.tool_name = t.name
LEFT JOIN LATERAL (
    SELECT kind
    FROM tool_change c
    WHERE c.tenant_id = %(tenant_id)s
      AND c.tool_id = t.id
      AND c.number = t.current_number
      AND c.kind IN ('published', 'deprecated', 'retired', 'restored')
    ORDER BY c.ordinal DESC
    LIMIT 1
) s ON true
WHERE t.tenant_id = %(tenant_id)s
  AND t.name > %(after)s
  AND (%(text)s = '' OR strpos(lower(t.name), lower(%(text)s)) > 0)
  AND (%(tag)s = '' OR %(tag)s = ANY (t.tags))
  AND CASE %(state)s
      WHEN '' THEN true
      WHEN 'draft' THEN d.id IS NOT NULL
      WHEN 'uncalled' THEN t.current_number > 0 AND o.last_seen_at IS NULL
          AND t.name <> ALL (%(called)s)
      WHEN 'published' THEN t.current_number > 0 AND s.kind IN ('published', 'restored')
      ELSE s.kind = %(state)s
  END
ORDER BY t.name
LIMIT %(limit)s

-- observed_tools --
-- Names after a name that calls used, but that no registered tool has.
SELECT o.tool_name, o.last_seen_at
FROM observed_tool o
WHERE o.tenant_id = %(tenant_id)s
  AND o.tool_name > %(after)s
  AND (%(text)s = '' OR strpos(lower(o.tool_name), lower(%(text)s)) > 0)
  AND NOT EXISTS (SELECT FROM tool t WHERE t.tenant_id = %(tenant_id)s AND t.name = o.tool_name)
ORDER BY o.tool_name
LIMIT %(limit)s

-- expired_tools --
-- Tools registered for one turn that were neither changed nor called since.
SELECT t.id
FROM tool t
JOIN tool_version v
    ON v.tenant_id = %(tenant_id)s AND v.tool_id = t.id AND v.number = t.current_number
LEFT JOIN observed_tool o ON o.tenant_id = %(tenant_id)s AND o.tool_name = t.name
WHERE t.tenant_id = %(tenant_id)s
  AND v.ephemeral
  AND coalesce(o.last_seen_at < %(since)s, true)
  AND NOT EXISTS (
      SELECT FROM tool_change c
      WHERE c.tenant_id = %(tenant_id)s AND c.tool_id = t.id AND c.at >= %(since)s
  )
  AND coalesce((
      SELECT c.kind <> 'retired'
      FROM tool_change c
      WHERE c.tenant_id = %(tenant_id)s
        AND c.tool_id = t.id
        AND c.number = t.current_number
        AND c.kind IN ('published', 'deprecated', 'retired', 'restored')
      ORDER BY c.ordinal DESC
      LIMIT 1
  ), true)
ORDER BY t.name
LIMIT 1000
