DROP TABLE otlp_span;
