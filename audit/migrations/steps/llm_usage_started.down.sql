DROP INDEX llm_usage_started_idx;
