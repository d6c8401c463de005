-- ledger_size --
-- How many events the log has.
SELECT coalesce((SELECT size FROM ledger_head WHERE tenant_id = %(tenant_id)s), 0)

-- registry_changes --
-- Versions published in a range, newest first. Also how many there are, and how many are the first
-- of their tool.
SELECT t.name, v.number, v.digest, v.created_at, v.created_by, v.created_by_key,
       count(*) OVER (), count(*) FILTER (WHERE v.number = 1) OVER ()
FROM tool_version v
JOIN tool t ON t.tenant_id = %(tenant_id)s AND t.id = v.tool_id
WHERE v.tenant_id = %(tenant_id)s
  AND v.created_at >= %(start)s
  AND v.created_at < %(end)s
ORDER BY v.created_at DESC, t.name, v.number DESC
LIMIT %(limit)s

-- exports_made --
-- Who exported what in a range, newest first, and how many exports there were. Ids cannot narrow
-- the search, as those of `record_view` are hashes.
SELECT at, user_name, verb, subject, coalesce(details ->> 'query', ''), count(*) OVER ()
FROM action
WHERE tenant_id = %(tenant_id)s
  AND at >= %(start)s
  AND at < %(end)s
  AND right(verb, 7) = '.export'
ORDER BY at DESC, id DESC
LIMIT %(limit)s

-- report_insert --
-- Store a report. Nothing happens if there is already one of that kind and period.
INSERT INTO report (
    tenant_id, id, created_at, made_by, made_as, kind, start_at, end_at, time_zone, period,
    ledger_size, query, again_of, figures
)
VALUES (
    %(tenant_id)s, %(id)s, %(created_at)s, %(made_by)s, %(made_as)s, %(kind)s, %(start)s, %(end)s,
    %(time_zone)s, %(period)s, %(ledger_size)s, %(query)s, %(again_of)s, %(figures)s
)
ON CONFLICT (tenant_id, kind, period) DO NOTHING
RETURNING id

-- {{report_head}} --
-- The columns of a report without its figures.
id, created_at, made_by, made_as, kind, start_at, end_at, time_zone, ledger_size, query, again_of

-- report_by_id --
-- A report with its figures.
SELECT {{report_head}}, figures
FROM report
WHERE tenant_id = %(tenant_id)s AND id = %(id)s

-- report_page --
-- Reports before an id, newest first, each with its headline figures. jsonb_to_record unpacks a
-- document once; each `figures -> …` would unpack it again.
SELECT {{report_head}},
       jsonb_build_object(
           'volume', jsonb_build_object('calls', f.volume -> 'calls'),
           'reliability', jsonb_build_object(
               'failed', f.reliability -> 'failed',
               'error_rate', f.reliability -> 'error_rate'
           ),
           'violations', jsonb_build_object('violating', f.violations -> 'violating'),
           'completeness', jsonb_build_object('is_complete', f.completeness -> 'is_complete')
       ) || jsonb_strip_nulls(jsonb_build_object(
           'record', CASE WHEN f.record IS NOT NULL THEN
               jsonb_build_object('at', f.record -> 'at')
           END
       ))
FROM report
CROSS JOIN LATERAL jsonb_to_record(figures) AS f (
    volume jsonb, reliability jsonb, violations jsonb, completeness jsonb, record jsonb
)
WHERE tenant_id = %(tenant_id)s AND id < %(before)s
ORDER BY id DESC
LIMIT %(page_limit)s

-- report_page_after --
-- As report_page, but after an id and oldest first: for going back to newer pages.
SELECT id
FROM report
WHERE tenant_id = %(tenant_id)s AND id > %(after)s
ORDER BY id
LIMIT %(page_limit)s

-- reports_of_periods --
-- Which of some periods have a scheduled report, by kind.
SELECT kind, period
FROM report
WHERE tenant_id = %(tenant_id)s AND kind = ANY(%(kinds)s::text[]) AND period = ANY(%(periods)s::text[])

-- reports_forget --
-- Delete reports made before an instant. Ids are in order of time.
DELETE FROM report
WHERE tenant_id = %(tenant_id)s AND id < %(before)s AND created_at < %(until)s
RETURNING id

-- report_schedule_read --
-- The schedule of the reports that the worker makes.
SELECT kinds, time_zone, keep_days FROM report_schedule WHERE tenant_id = %(tenant_id)s

-- report_schedule_write --
-- Change that schedule.
INSERT INTO report_schedule (tenant_id, kinds, time_zone, keep_days)
VALUES (%(tenant_id)s, %(kinds)s, %(time_zone)s, %(keep_days)s)
ON CONFLICT (tenant_id) DO UPDATE
SET kinds = excluded.kinds, time_zone = excluded.time_zone, keep_days = excluded.keep_days
RETURNING tenant_id
