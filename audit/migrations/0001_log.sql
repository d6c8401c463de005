-- The log: every accepted line, as it came, in the order of its ledger; and what was refused.
-- The application adds rows and never changes them.

CREATE TABLE batch (
    tenant_id uuid NOT NULL,
    batch_on date NOT NULL,              -- the UTC date inside batch_id, a UUIDv7
    batch_id uuid NOT NULL,
    received_at timestamptz NOT NULL,
    first_index bigint NOT NULL,         -- ledger index of the first event
    event_count integer NOT NULL,
    body_sha256 bytea NOT NULL,          -- of the inflated body: same id, other body is refused
    answer text NOT NULL,                -- the JSON a replay is answered with
    leaves bytea NOT NULL,               -- 32 bytes an event: RFC 6962 leaf hashes
    payload bytea,                       -- zstd; NULL once the keeper blanked it
    CONSTRAINT batch_pkey PRIMARY KEY (tenant_id, batch_on, batch_id),
    CONSTRAINT batch_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
-- Payloads are compressed already and hashes cannot be: spare PostgreSQL the attempt.
ALTER TABLE batch ALTER payload SET STORAGE EXTERNAL, ALTER leaves SET STORAGE EXTERNAL;
-- From a ledger index to its batch.
CREATE INDEX batch_tenant_first_index_idx ON batch (tenant_id, first_index);

CREATE TABLE ledger_head (
    tenant_id uuid NOT NULL,
    size bigint NOT NULL,                -- events in the log; also the lock that orders batches
    CONSTRAINT ledger_head_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT ledger_head_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

CREATE TABLE rejected_event (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    received_at timestamptz NOT NULL,
    batch_id uuid NOT NULL,
    line integer NOT NULL,               -- 1-based, in the request body
    event_id uuid,
    code text NOT NULL,
    message text NOT NULL,
    raw bytea NOT NULL,                  -- the first 64 KiB of the line
    raw_length integer NOT NULL,         -- of the whole line
    CONSTRAINT rejected_event_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT rejected_event_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
CREATE INDEX rejected_event_tenant_received_idx ON rejected_event (tenant_id, received_at);

CREATE TABLE producer (
    tenant_id uuid NOT NULL,
    producer_id text COLLATE "C" NOT NULL,
    first_seq bigint,                    -- NULL: it does not number its events
    last_seq bigint,
    event_count bigint NOT NULL,         -- distinct numbered events stored
    last_heard_at timestamptz NOT NULL,
    CONSTRAINT producer_pkey PRIMARY KEY (tenant_id, producer_id),
    CONSTRAINT producer_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

-- A table of its own, so that a loss said twice counts once, whatever batches said it.
CREATE TABLE gap (
    tenant_id uuid NOT NULL,
    producer_id text COLLATE "C" NOT NULL,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,              -- inclusive; ranges may overlap
    reason text NOT NULL,
    lost_count bigint NOT NULL,
    heard_at timestamptz NOT NULL,
    CONSTRAINT gap_pkey PRIMARY KEY (tenant_id, producer_id, from_seq, to_seq),
    CONSTRAINT gap_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

ALTER TABLE batch ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE ledger_head ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE rejected_event ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE producer ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE gap ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON batch
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON ledger_head
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON rejected_event
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON producer
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON gap
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- Append-only is a grant, not a habit.
REVOKE UPDATE, DELETE ON batch, gap FROM tooltrail_app;
REVOKE DELETE ON ledger_head FROM tooltrail_app;
GRANT SELECT, UPDATE (payload) ON batch TO tooltrail_keeper;
