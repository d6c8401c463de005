-- Ends whose start has not come are few and asked for often: an index of them alone, so that no
-- search for one walks over all calls.
CREATE INDEX invocation_orphan_idx ON invocation (tenant_id, started_at)
    WHERE start_batch_id IS NULL;
