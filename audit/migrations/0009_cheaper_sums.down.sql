ALTER TABLE latency NO FORCE ROW LEVEL SECURITY;
UPDATE latency
SET buckets = (SELECT array_agg(coalesce(counts.count, 0) ORDER BY n)
               FROM generate_series(0, 127) AS n
               LEFT JOIN bucket_counts(buckets) AS counts ON counts.bucket = n);
ALTER TABLE latency FORCE ROW LEVEL SECURITY;
DROP FUNCTION bucket_counts(bigint[]);
DROP FUNCTION add_buckets(bigint[], bigint[]);
CREATE FUNCTION add_buckets(bigint[], bigint[]) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (SELECT array_agg(a + b ORDER BY n)
            FROM unnest($1, $2) WITH ORDINALITY AS both_of(a, b, n));
CREATE OR REPLACE FUNCTION add_capped(bigint, bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN least($1::numeric + $2, 9223372036854775807)::bigint;
