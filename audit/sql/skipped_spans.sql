-- known_skipped_spans --
-- All rows of the tenant, which are few.
SELECT reason, service, scope, name FROM skipped_span WHERE tenant_id = %(tenant_id)s

-- count_skipped_spans --
-- Count a request's skipped spans, in order of key.
INSERT INTO skipped_span AS s (
    tenant_id, reason, service, scope, name, span_count, first_at, last_at
)
SELECT %(tenant_id)s, reason, service, scope, name, span_count,
       %(now)s::timestamptz, %(now)s::timestamptz
FROM unnest(
    %(reasons)b::text[], %(services)b::text[], %(scopes)b::text[], %(names)b::text[],
    %(counts)b::bigint[]
) AS u (reason, service, scope, name, span_count)
ON CONFLICT (tenant_id, reason, service, scope, name) DO UPDATE SET
    span_count = s.span_count + excluded.span_count,
    last_at = greatest(s.last_at, excluded.last_at)

-- skipped_spans --
-- What was skipped, the most frequent first.
SELECT reason, service, scope, name, span_count, first_at, last_at
FROM skipped_span
WHERE tenant_id = %(tenant_id)s
ORDER BY span_count DESC, reason, service, scope, name

-- skipped_span_totals --
-- How many spans were skipped, and how many of them for this reason.
SELECT coalesce(sum(span_count), 0)::bigint,
       coalesce(sum(span_count) FILTER (WHERE reason = %(reason)s), 0)::bigint
FROM skipped_span
WHERE tenant_id = %(tenant_id)s

-- forget_skipped_spans --
-- Delete what has not arrived for long.
DELETE FROM skipped_span WHERE tenant_id = %(tenant_id)s AND last_at < %(before)s
