DROP TABLE latency, rollup, trace, violation, invocation;
