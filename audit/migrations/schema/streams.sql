-- Streams to SIEMs (docs/siem.md).

-- stream: where a tenant's record is sent, and how far it has been sent.
--
-- Retention: kept until an admin deletes it.
-- Erasure: no effect; it holds no payload. What was sent is out of reach.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE stream (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    of text NOT NULL,                    -- entries of executors (calls), or the server's own
    format text NOT NULL,
    way text NOT NULL,
    settings jsonb NOT NULL,             -- what may be shown, such as a host
    secret_box bytea,                    -- encrypted, with a key that is not in the database
    has_proofs boolean NOT NULL,         -- each record has its whole proof
    payloads_by text,                    -- who allowed that payloads leave, and why
    payloads_reason text,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's or key's name
    changed_at timestamptz NOT NULL,
    changed_by text NOT NULL,
    paused_at timestamptz,
    paused_by text,
    next_index bigint NOT NULL,          -- the ledger index up to which all was acknowledged
    sent_count bigint NOT NULL,
    sent_at timestamptz,                 -- when records were acknowledged last
    failure text NOT NULL,               -- why the last attempt failed; '' if it did not
    failing_since timestamptz,
    attempt_count integer NOT NULL,      -- failed ones in a row
    next_attempt_at timestamptz NOT NULL,
    last_test jsonb,                     -- when it was asked for, and the answer
    claim uuid,                          -- of the worker that sends it now
    claimed_until timestamptz,
    CONSTRAINT stream_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT stream_tenant_name_uniq UNIQUE (tenant_id, name),
    CONSTRAINT stream_of_check CHECK (of IN ('calls', 'actions')),
    CONSTRAINT stream_format_check CHECK (format IN ('ocsf', 'ecs')),
    CONSTRAINT stream_way_check CHECK (way IN ('syslog', 'https', 'splunk', 's3')),
    CONSTRAINT stream_payloads_check CHECK (num_nulls(payloads_by, payloads_reason) IN (0, 2)),
    CONSTRAINT stream_paused_check CHECK (num_nulls(paused_at, paused_by) IN (0, 2)),
    CONSTRAINT stream_failing_check CHECK ((failure = '') = (failing_since IS NULL)),
    CONSTRAINT stream_claim_check CHECK (num_nulls(claim, claimed_until) IN (0, 2)),
    CONSTRAINT stream_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE stream ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON stream
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
