CREATE OR REPLACE FUNCTION add_buckets(total bigint[], more bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
BEGIN
    FOR n IN array_lower(more, 1) .. array_upper(more, 1) LOOP
        IF more[n] <> 0 THEN
            total[n] := coalesce(total[n], 0) + more[n];
        END IF;
    END LOOP;
    RETURN total;
END
$$;

-- What each bucket, from 0, has counted.
CREATE FUNCTION bucket_counts(buckets bigint[]) RETURNS TABLE (bucket integer, count bigint)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
SELECT (array_lower(buckets, 1) + n - 2)::integer, each.count
FROM unnest(buckets) WITH ORDINALITY AS each (count, n)
WHERE each.count <> 0
$$;

CREATE FUNCTION histogram_buckets(number numeric) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE
    RETURN (SELECT array_agg(substr(lpad(number::text, 1536, '0'), 1525 - 12 * n, 12)::bigint
                             ORDER BY n)
            FROM generate_series(0, 127) AS n);
ALTER TABLE latency RENAME COLUMN histogram TO buckets;
ALTER TABLE latency ALTER COLUMN buckets TYPE bigint[] USING histogram_buckets(buckets);
DROP FUNCTION histogram_buckets(numeric);
