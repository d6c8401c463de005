-- The log: every accepted event as it was sent, in ledger order, and every rejected one.
-- It is the source of truth: the index is derived from it and the ledger proves it. And what is
-- known of the senders: what they lost, and what they sent that is no call.
-- (How to read these files: tenants/migrations/schema/tenants.sql.)

-- batch: one accepted request with its events, or one entry that the server wrote itself.
--
-- Retention: payload becomes NULL payload_days after it was received, or loses the events that no
--   legal hold covers. An entry is added that says so.
-- Erasure: payload loses the events of the calls; NULL if none is left. An entry is added that
--   says so.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE batch (
    tenant_id uuid NOT NULL,
    batch_on date NOT NULL,              -- the UTC date in batch_id, a UUIDv7
    batch_id uuid NOT NULL,              -- the request's Idempotency-Key
    received_at timestamptz NOT NULL,
    first_index bigint NOT NULL,         -- ledger index of the first event
    event_count integer NOT NULL,
    body_sha256 bytea NOT NULL,          -- of the inflated body: same id and other body: refused
    answer text NOT NULL,                -- the JSON that a repeated request gets, without `ledger`
    leaves bytea NOT NULL,               -- RFC 6962 leaf hashes, 32 bytes per event
    payload bytea,                       -- the events, zstd; NULL: erased
    is_own boolean DEFAULT false NOT NULL,  -- an entry of the server's own: no call, never erased
    CONSTRAINT batch_pkey PRIMARY KEY (tenant_id, batch_on, batch_id),
    CONSTRAINT batch_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
-- Payloads are compressed already and hashes cannot be: PostgreSQL need not try.
ALTER TABLE batch ALTER payload SET STORAGE EXTERNAL, ALTER leaves SET STORAGE EXTERNAL;
-- From a ledger index to its batch.
CREATE INDEX batch_tenant_first_index_idx ON batch (tenant_id, first_index);
ALTER TABLE batch ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON batch
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- The application appends. Only the keeper can take a payload away.
REVOKE UPDATE, DELETE ON batch FROM tooltrail_app;
GRANT SELECT, INSERT, UPDATE (payload) ON batch TO tooltrail_keeper;

-- ledger_head: how many events a tenant's log has. Its row lock puts batches in order.
--
-- Retention: kept; size grows by the entries about it.
-- Erasure: kept; size grows by the entries about it.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE ledger_head (
    tenant_id uuid NOT NULL,
    size bigint NOT NULL,                -- events in the log, and the next ledger index
    has_baseline boolean DEFAULT false NOT NULL,  -- the log has the entry with the digests of all
                                         -- rows that actions name from then on. If somebody resets
                                         -- this, it gets a second one, which the check reports
    CONSTRAINT ledger_head_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT ledger_head_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE ledger_head ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON ledger_head
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE DELETE ON ledger_head FROM tooltrail_app;
GRANT SELECT, INSERT, UPDATE ON ledger_head TO tooltrail_keeper;

-- rejected_event: a line that was rejected, or that contradicts a stored one, and why: the inbox.
--
-- Retention: raw becomes empty payload_days after it was received; the row is kept.
-- Erasure: raw becomes empty if the line is about one of the calls; the row is kept.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE rejected_event (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time, so the key pages
    received_at timestamptz NOT NULL,
    batch_id uuid NOT NULL,              -- the request's Idempotency-Key
    line integer NOT NULL,               -- in the request's body, from 1
    event_id uuid,                       -- NULL: the line has none that can be read
    code text NOT NULL,                  -- why it was rejected, for programs
    message text NOT NULL,               -- why it was rejected, for people; quotes no payload
    raw bytea NOT NULL,                  -- the line's first 64 KiB; empty: erased
    raw_length integer NOT NULL,         -- bytes of the whole line
    resolution text,                     -- NULL: nobody has dealt with it yet
    resolved_at timestamptz,
    resolved_by_id bigint,
    resolved_by_name text,               -- copied: outlives the account
    discard_reason text,
    redrive_batch_id uuid,               -- the batch it was sent again in
    redrive_edited boolean,              -- it was edited before it was sent again
    CONSTRAINT rejected_event_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT rejected_event_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT rejected_event_resolution_check CHECK (
        resolution IN ('accepted', 'duplicate', 'refused', 'discarded')
        AND num_nulls(resolved_at, resolved_by_name) = 0
        AND (resolution = 'discarded') = (discard_reason IS NOT NULL)
        AND (resolution = 'discarded') = (redrive_batch_id IS NULL)
        AND num_nulls(redrive_batch_id, redrive_edited) IN (0, 2)
        OR num_nonnulls(resolution, resolved_at, resolved_by_id, resolved_by_name,
                        discard_reason, redrive_batch_id, redrive_edited) = 0
    )
);
-- Those that nobody has dealt with are few and counted on every page.
CREATE INDEX rejected_event_tenant_open_idx ON rejected_event (tenant_id, id)
    WHERE resolution IS NULL;
-- Those of one code: of many codes one may be rare.
CREATE INDEX rejected_event_tenant_code_idx ON rejected_event (tenant_id, code, id);
ALTER TABLE rejected_event ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON rejected_event
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- The application writes only what became of a line.
REVOKE UPDATE, DELETE ON rejected_event FROM tooltrail_app;
GRANT UPDATE (
    resolution, resolved_at, resolved_by_id, resolved_by_name, discard_reason, redrive_batch_id,
    redrive_edited
) ON rejected_event TO tooltrail_app;
GRANT SELECT, UPDATE (raw) ON rejected_event TO tooltrail_keeper;

-- producer: one sender's numbering of its events, and how much of it has arrived. Where
-- event_count is less than last_seq - first_seq + 1, events are missing.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
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
ALTER TABLE producer ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON producer
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

-- gap: numbers that a producer itself reported as dropped. A table of its own, so that a loss
-- reported twice counts once, whichever batches report it.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
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
ALTER TABLE gap ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON gap
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE UPDATE, DELETE ON gap FROM tooltrail_app;

-- skipped_span: spans and log records that arrived and became no call, by name and reason. They are
-- in no batch; a page says with these counts why calls are missing.
--
-- Retention: rows are deleted 30 days after they last arrived, whatever the tenant's settings are.
-- Erasure: no effect; it holds names of operations, no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE skipped_span (
    tenant_id uuid NOT NULL,
    reason text COLLATE "C" NOT NULL,    -- audit.queries.skipped_spans.Reason, or why it was rejected
    service text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,     -- the instrumentation's name
    name text COLLATE "C" NOT NULL,
    span_count bigint NOT NULL,          -- a span that is sent twice counts twice
    first_at timestamptz NOT NULL,       -- when the first one arrived
    last_at timestamptz NOT NULL,
    CONSTRAINT skipped_span_pkey PRIMARY KEY (tenant_id, reason, service, scope, name),
    CONSTRAINT skipped_span_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE skipped_span ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON skipped_span
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
