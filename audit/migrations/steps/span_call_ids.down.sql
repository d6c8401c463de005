CREATE INDEX otlp_span_parent_new ON otlp_span (tenant_id, started_on, parent_uuid);
DROP INDEX otlp_span_parent_idx;
ALTER INDEX otlp_span_parent_new RENAME TO otlp_span_parent_idx;
