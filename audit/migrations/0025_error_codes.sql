-- Calls whose error has a code, by it: a walk along all failed ones read a month of them for a code
-- that is rare, and until its budget was spent for one that never came.
CREATE INDEX invocation_error_code_idx ON invocation (tenant_id, error_code, started_at, invocation_id)
    WHERE error_code IS NOT NULL;
