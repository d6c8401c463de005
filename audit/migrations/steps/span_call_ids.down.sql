DROP INDEX otlp_span_parent_idx;
CREATE INDEX otlp_span_parent_idx ON otlp_span (tenant_id, started_on, parent_uuid);
