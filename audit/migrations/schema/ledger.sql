-- The ledger: a Merkle tree (RFC 6962) over the leaves of each tenant's log, its signed
-- checkpoints, what was erased, and checks of the whole. The worker writes it as the keeper; the
-- web server, which runs as the application, only reads. Its leaves and its size are in log.sql.

-- ledger_tile: up to 256 neighboring hashes of one level of a tenant's tree (C2SP tlog-tiles).
--
-- Retention: kept.
-- Erasure: no effect: hashes stay, so the ledger still proves what is left.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE ledger_tile (
    tenant_id uuid NOT NULL,
    level integer NOT NULL,              -- 0: leaf hashes; above: roots of full tiles below
    tile_index bigint NOT NULL,          -- within the level
    hashes bytea NOT NULL,               -- 32 bytes each; grows at its end, never changes
    CONSTRAINT ledger_tile_pkey PRIMARY KEY (tenant_id, level, tile_index),
    CONSTRAINT ledger_tile_hashes_check
        CHECK (length(hashes) BETWEEN 32 AND 8192 AND length(hashes) % 32 = 0),
    CONSTRAINT ledger_tile_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
-- Hashes cannot be compressed: PostgreSQL need not try.
ALTER TABLE ledger_tile ALTER hashes SET STORAGE EXTERNAL;
ALTER TABLE ledger_tile ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON ledger_tile
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE INSERT, UPDATE, DELETE ON ledger_tile FROM tooltrail_app;
GRANT SELECT, INSERT, UPDATE (hashes) ON ledger_tile TO tooltrail_keeper;

-- ledger_checkpoint: size and root of a tenant's ledger at some moment, signed.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE ledger_checkpoint (
    tenant_id uuid NOT NULL,
    epoch integer NOT NULL,              -- how often the ledger was restarted after a restore
    size bigint NOT NULL,                -- entries
    origin text NOT NULL,                -- whose ledger, as the note says
    root bytea NOT NULL,
    note text NOT NULL,                  -- the signed note, byte by byte
    signed_at timestamptz NOT NULL,
    receipts bytea[] DEFAULT '{}'::bytea[] NOT NULL,  -- the root, signed for COSE by each key; '{}': by
                                         -- a release that made none
    CONSTRAINT ledger_checkpoint_pkey PRIMARY KEY (tenant_id, epoch, size),
    CONSTRAINT ledger_checkpoint_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE ledger_checkpoint ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON ledger_checkpoint
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE INSERT, UPDATE, DELETE ON ledger_checkpoint FROM tooltrail_app;
GRANT SELECT, INSERT ON ledger_checkpoint TO tooltrail_keeper;

-- ledger_signer: whether the signer refuses a tenant's log. No row: it never has. Of several signers
-- the one that remembers most decides: a refusal stands until one that remembers as much resumes.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE ledger_signer (
    tenant_id uuid NOT NULL,
    refusal text,                        -- why it does not sign; NULL: it signs
    since timestamptz NOT NULL,
    remembered_epoch integer DEFAULT 0 NOT NULL,  -- by the signer that refuses:
    remembered_size bigint DEFAULT 0 NOT NULL,    -- its last signed checkpoint
    CONSTRAINT ledger_signer_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT ledger_signer_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE ledger_signer ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON ledger_signer
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE INSERT, UPDATE, DELETE ON ledger_signer FROM tooltrail_app;
GRANT SELECT, INSERT, UPDATE (refusal, since, remembered_epoch, remembered_size)
    ON ledger_signer TO tooltrail_keeper;

-- ledger_key: the installation's public keys, old ones too. Private keys are in no database.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are kept: they are of no tenant.
-- Citus: local to the coordinator.
CREATE TABLE ledger_key (
    public_key bytea NOT NULL,           -- Ed25519, 32 bytes
    created_at timestamptz NOT NULL,
    signs_until timestamptz,             -- NULL: it is in use
    CONSTRAINT ledger_key_pkey PRIMARY KEY (public_key)
);
REVOKE INSERT, UPDATE, DELETE ON ledger_key FROM tooltrail_app;
GRANT SELECT, INSERT, UPDATE (signs_until) ON ledger_key TO tooltrail_keeper;

-- ledger_erasure: which entry of the ledger says that the payloads of some events are gone, so
-- that a page finds it. Derived from the entries, which alone are proof.
--
-- Retention: kept; a row is added for what is erased.
-- Erasure: kept; a row is added for what is erased.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE ledger_erasure (
    tenant_id uuid NOT NULL,
    entry_index bigint NOT NULL,         -- the entry's ledger index
    begin_index bigint NOT NULL,         -- of the first event it is about
    end_index bigint NOT NULL,           -- after the last
    erasure_id uuid,                     -- NULL: retention
    CONSTRAINT ledger_erasure_pkey PRIMARY KEY (tenant_id, entry_index),
    CONSTRAINT ledger_erasure_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE ledger_erasure ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON ledger_erasure
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
REVOKE INSERT, UPDATE, DELETE ON ledger_erasure FROM tooltrail_app;
GRANT SELECT, INSERT ON ledger_erasure TO tooltrail_keeper;

-- witness_answer: what a witness answered when it was asked to sign a checkpoint.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE witness_answer (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    witness text NOT NULL,               -- its public key, as a C2SP vkey
    epoch integer NOT NULL,              -- of the checkpoint, as the size
    size bigint NOT NULL,
    at timestamptz NOT NULL,
    outcome text NOT NULL,
    line text NOT NULL,                  -- its signature, a line of a note; '' unless it signed
    problem text NOT NULL,               -- why it did not sign
    CONSTRAINT witness_answer_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT witness_answer_outcome_check CHECK (outcome IN ('signed', 'refused', 'silent')),
    CONSTRAINT witness_answer_line_check CHECK ((line <> '') = (outcome = 'signed')),
    CONSTRAINT witness_answer_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
-- A witness's last answer, and the last checkpoint that it signed.
CREATE INDEX witness_answer_witness_idx ON witness_answer (tenant_id, witness, id);
-- Who signed a checkpoint.
CREATE INDEX witness_answer_size_idx ON witness_answer (tenant_id, epoch, size)
    WHERE outcome = 'signed';
ALTER TABLE witness_answer ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON witness_answer
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- What a witness said stays as it was.
REVOKE UPDATE, DELETE ON witness_answer FROM tooltrail_app;

-- ledger_check: one check of a whole ledger by the worker: how far it is and what it found.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE ledger_check (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    created_by text NOT NULL,            -- a user's name
    created_at timestamptz NOT NULL,
    state text NOT NULL,
    size bigint NOT NULL,                -- entries to read
    next_index bigint NOT NULL,          -- the first entry that was not read yet
    erased_count bigint NOT NULL,        -- entries without payload, as the ledger says
    checkpoint_count bigint NOT NULL,    -- signed roots that were compared
    finding_count bigint NOT NULL,
    findings text[] NOT NULL,            -- the first of them
    missing bigint[] DEFAULT '{}'::bigint[] NOT NULL,  -- begin, end, begin, end … of runs of entries
                                         -- without payload that no entry read so far explains
    finished_at timestamptz,
    CONSTRAINT ledger_check_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT ledger_check_state_check
        CHECK (state IN ('waiting', 'running', 'passed', 'failed', 'cancelled')),
    CONSTRAINT ledger_check_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE ledger_check ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON ledger_check
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- A result stays on record.
REVOKE DELETE ON ledger_check FROM tooltrail_app;
