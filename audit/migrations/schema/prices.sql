-- What calls cost (docs/adr/0040): the tenant's price lists, the units that tools report, and the tokens
-- that models took.

-- price_list: the prices that hold from a day until the next list.
--
-- Retention: kept until an admin deletes it.
-- Erasure: no effect; it holds names of tools and amounts, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE price_list (
    tenant_id uuid NOT NULL,
    holds_from date NOT NULL,            -- a UTC day; until the day of the next list
    currency text NOT NULL,              -- ISO 4217: three letters
    prices jsonb NOT NULL,               -- audit.queries.price_lists
    in_use jsonb,                        -- the prices of the figures: those of before, until units
                                         -- are counted. NULL: the list does not hold yet
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,            -- a user's or key's name
    CONSTRAINT price_list_pkey PRIMARY KEY (tenant_id, holds_from),
    CONSTRAINT price_list_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE price_list ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON price_list
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- unit_path: where the results of a tool say how many units a call took, and how far the worker has
-- read the log for it.
--
-- Retention: kept while a price list names it.
-- Erasure: no effect; it holds names, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE unit_path (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- UUIDv5 of tool and path
    tool_name text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    from_index bigint NOT NULL,          -- ledger index: earlier events are before every list
    next_index bigint NOT NULL,          -- the next one to read
    goal_index bigint NOT NULL,          -- once it is read, figures may use the path
    erased_count bigint NOT NULL,        -- events of the log whose payload is gone
    CONSTRAINT unit_path_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT unit_path_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE unit_path ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON unit_path
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- call_units: how many units a completed call took, by its end event in the log. Not partitioned: few
-- tools are priced by units.
--
-- Retention: rows are deleted index_days after the call's start.
-- Erasure: no effect; it holds a number, as of tokens, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE call_units (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,            -- this, started_at and the version: the call's
    unit_path_id uuid NOT NULL,
    invocation_id uuid NOT NULL,
    started_at timestamptz NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    units numeric NOT NULL,
    CONSTRAINT call_units_pkey PRIMARY KEY (tenant_id, started_on, unit_path_id, invocation_id),
    CONSTRAINT call_units_units_check CHECK (units >= 0),
    CONSTRAINT call_units_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE call_units ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON call_units
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- llm_usage: the tokens of a model's answer, by its span. They are no tool's, and no call has a part of
-- them. Not in the log: such spans are no calls, so `reindex` does not make it again.
--
-- Retention: rows are deleted index_days after the answer's start.
-- Erasure: no effect; it holds numbers and names, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE llm_usage (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    span_uuid uuid NOT NULL,             -- UUIDv5 of trace id and span id
    started_at timestamptz NOT NULL,
    trace_id text COLLATE "C" NOT NULL,
    provider text COLLATE "C" NOT NULL,  -- this and the next four: '' if no span says it
    model text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,     -- this and the next two: also from spans above, which may
    agent_version text COLLATE "C" NOT NULL, -- come later
    run_id text COLLATE "C" NOT NULL,    -- the conversation
    input_tokens bigint NOT NULL,        -- of all kinds: also those of a cache
    cached_tokens bigint NOT NULL,       -- of them, read from a cache
    written_tokens bigint NOT NULL,      -- of them, written to a cache
    output_tokens bigint NOT NULL,
    is_inner boolean NOT NULL,           -- a span above reports the same answer, and counts
    CONSTRAINT llm_usage_pkey PRIMARY KEY (tenant_id, started_on, span_uuid),
    CONSTRAINT llm_usage_tokens_check CHECK (
        cached_tokens >= 0 AND written_tokens >= 0 AND output_tokens >= 0
        AND input_tokens >= cached_tokens + written_tokens
    ),
    CONSTRAINT llm_usage_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
-- The newest answers, and those of a range.
CREATE INDEX llm_usage_started_idx ON llm_usage (tenant_id, started_at);
CREATE INDEX llm_usage_trace_idx ON llm_usage (tenant_id, trace_id);
CREATE INDEX llm_usage_run_idx ON llm_usage (tenant_id, run_id) WHERE run_id <> '';
ALTER TABLE llm_usage ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON llm_usage
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- Exporters send what ends first: an agent's span, or the framework's around a client's, comes later.
REVOKE UPDATE, DELETE ON llm_usage FROM tooltrail_app;
GRANT UPDATE (agent, agent_version, run_id, is_inner) ON llm_usage TO tooltrail_app;
