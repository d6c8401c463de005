-- The newest answers of models, and those of a range.
CREATE INDEX llm_usage_started_idx ON llm_usage (tenant_id, started_at);
