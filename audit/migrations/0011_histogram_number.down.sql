CREATE FUNCTION add_buckets(bigint[], bigint[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (SELECT array_agg(a + b ORDER BY n)
            FROM unnest($1, $2) WITH ORDINALITY AS both_of(a, b, n));
CREATE FUNCTION histogram_buckets(number numeric) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE
    RETURN (SELECT array_agg(substr(lpad(number::text, 1536, '0'), 1525 - 12 * n, 12)::bigint
                             ORDER BY n)
            FROM generate_series(0, 127) AS n);
ALTER TABLE latency RENAME COLUMN histogram TO buckets;
ALTER TABLE latency ALTER COLUMN buckets TYPE bigint[] USING histogram_buckets(buckets);
DROP FUNCTION histogram_buckets(numeric);
