-- A histogram is one number, of which each bucket has twelve digits (audit/index/histogram.py): merged
-- by PostgreSQL's own addition, which no function of ours comes near.
CREATE FUNCTION histogram_number(buckets bigint[]) RETURNS numeric
    LANGUAGE sql IMMUTABLE
    RETURN (SELECT coalesce(sum(count * rpad('1', 1 + 12 * (n - 1)::integer, '0')::numeric), 0)
            FROM unnest(buckets) WITH ORDINALITY AS each (count, n));
ALTER TABLE latency ALTER COLUMN buckets TYPE numeric USING histogram_number(buckets);
ALTER TABLE latency RENAME COLUMN buckets TO histogram;
DROP FUNCTION histogram_number(bigint[]);
DROP FUNCTION add_buckets(bigint[], bigint[]);
