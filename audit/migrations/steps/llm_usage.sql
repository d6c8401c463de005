-- The tokens of models' answers.
CREATE TABLE llm_usage (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    span_uuid uuid NOT NULL,
    started_at timestamptz NOT NULL,
    trace_id text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    agent_version text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    input_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    written_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    is_inner boolean NOT NULL,
    CONSTRAINT llm_usage_pkey PRIMARY KEY (tenant_id, started_on, span_uuid),
    CONSTRAINT llm_usage_tokens_check CHECK (
        cached_tokens >= 0 AND written_tokens >= 0 AND output_tokens >= 0
        AND input_tokens >= cached_tokens + written_tokens
    ),
    CONSTRAINT llm_usage_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE INDEX llm_usage_trace_idx ON llm_usage (tenant_id, trace_id);
CREATE INDEX llm_usage_run_idx ON llm_usage (tenant_id, run_id) WHERE run_id <> '';
ALTER TABLE llm_usage ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON llm_usage
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON llm_usage FROM tooltrail_app;
GRANT UPDATE (agent, agent_version, run_id, is_inner) ON llm_usage TO tooltrail_app;
