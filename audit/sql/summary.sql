-- summary_hours --
-- The counters of whole hours, and their histogram as a number (audit/index/histogram.py).
SELECT coalesce(sum(histogram), 0)::text, coalesce(sum(completed_count), 0),
       coalesce(sum(failed_count), 0), coalesce(sum(violating_call_count), 0),
       coalesce(sum(violation_count), 0), coalesce(sum(prompt_tokens), 0),
       coalesce(sum(completion_tokens), 0)
FROM rollup
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(first_hour)s::date AND %(last_hour)s::date
  AND hour_at >= %(first_hour)s
  AND hour_at < %(last_hour)s

-- summary_edges --
-- The same for the two ends of a range that are not whole hours, from the calls themselves.
SELECT count(*) FILTER (WHERE state IN ('ok', 'failed')), count(*) FILTER (WHERE state = 'failed'),
       count(*) FILTER (WHERE violation_count > 0), coalesce(sum(violation_count), 0),
       coalesce(sum(prompt_tokens) FILTER (WHERE state <> 'cancelled'), 0),
       coalesce(sum(completion_tokens) FILTER (WHERE state <> 'cancelled'), 0)
FROM invocation
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(start)s::date AND %(end)s::date
  AND ((started_at >= %(start)s AND started_at < %(first_hour)s)
       OR (started_at >= %(last_hour)s AND started_at < %(end)s))

-- summary_uncounted --
-- Open and cancelled calls, which no counter of completed calls includes. Each kind has an index.
SELECT count(*) FILTER (WHERE NOT is_cancelled), count(*) FILTER (WHERE is_cancelled)
FROM (
    SELECT FALSE AS is_cancelled
    FROM invocation
    WHERE {{summary_range}}
      AND end_batch_id IS NULL
    UNION ALL
    SELECT TRUE
    FROM invocation
    WHERE {{summary_range}}
      AND state = 'cancelled'
) AS uncounted

-- {{summary_range}} --
-- The calls that started in a range.
tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(start)s::date AND %(end)s::date
      AND started_at >= %(start)s
      AND started_at < %(end)s

-- latency_edges --
-- The histogram for the two ends, by the formula of audit/index/histogram.py.
SELECT CASE WHEN duration_us < %(lowest_us)s THEN 0
            ELSE least(1 + floor(ln(duration_us / %(lowest_us)s::float8) / %(log_growth)s::float8),
                       %(last_bucket)s)
       END::integer AS bucket, count(*)
FROM invocation
WHERE tenant_id = %(tenant_id)s
  AND started_on BETWEEN %(start)s::date AND %(end)s::date
  AND state IN ('ok', 'failed')
  AND ((started_at >= %(start)s AND started_at < %(first_hour)s)
       OR (started_at >= %(last_hour)s AND started_at < %(end)s))
GROUP BY 1
