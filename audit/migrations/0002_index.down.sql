DROP TABLE latency, rollup, trace, violation, invocation;
DROP FUNCTION add_buckets(bigint[], bigint[]), add_capped(bigint, bigint);
