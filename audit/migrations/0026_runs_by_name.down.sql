DROP INDEX invocation_run_idx;
CREATE INDEX invocation_run_idx ON invocation (tenant_id, run_id, started_at)
    WHERE run_id IS NOT NULL;
