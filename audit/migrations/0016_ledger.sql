-- The ledger's tree and what was signed of it. Written by the worker as the keeper; the web
-- server, which runs as the application, only reads.

CREATE TABLE ledger_tile (
    tenant_id uuid NOT NULL,
    level integer NOT NULL,              -- 0: leaf hashes; above: roots of full tiles below
    tile_index bigint NOT NULL,
    hashes bytea NOT NULL,               -- 1 to 256 of 32 bytes; grows at its end, never changes
    CONSTRAINT ledger_tile_pkey PRIMARY KEY (tenant_id, level, tile_index),
    CONSTRAINT ledger_tile_hashes_check
        CHECK (length(hashes) BETWEEN 32 AND 8192 AND length(hashes) % 32 = 0),
    CONSTRAINT ledger_tile_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
-- Hashes cannot be compressed: spare PostgreSQL the attempt.
ALTER TABLE ledger_tile ALTER hashes SET STORAGE EXTERNAL;

CREATE TABLE ledger_checkpoint (
    tenant_id uuid NOT NULL,
    epoch integer NOT NULL,              -- how often the log was begun anew, after a restore
    size bigint NOT NULL,
    origin text NOT NULL,
    root bytea NOT NULL,
    note text NOT NULL,                  -- the signed note, byte by byte
    signed_at timestamptz NOT NULL,
    CONSTRAINT ledger_checkpoint_pkey PRIMARY KEY (tenant_id, epoch, size),
    CONSTRAINT ledger_checkpoint_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

-- Whether the signer refuses a tenant's log. No row: it never has.
CREATE TABLE ledger_signer (
    tenant_id uuid NOT NULL,
    refusal text,                        -- why; NULL: it signs
    since timestamptz NOT NULL,
    CONSTRAINT ledger_signer_pkey PRIMARY KEY (tenant_id),
    CONSTRAINT ledger_signer_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);

-- The installation's public keys, old ones too; the private ones are in no database.
CREATE TABLE ledger_key (
    public_key bytea NOT NULL,
    created_at timestamptz NOT NULL,
    signs_until timestamptz,             -- NULL: it is in use
    CONSTRAINT ledger_key_pkey PRIMARY KEY (public_key)
);

-- Batches of one entry that the server made itself: no call, and never erased by retention.
ALTER TABLE batch ADD is_own boolean NOT NULL DEFAULT false;

ALTER TABLE ledger_tile ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE ledger_checkpoint ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE ledger_signer ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON ledger_tile
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON ledger_checkpoint
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
CREATE POLICY tenant_isolation ON ledger_signer
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

REVOKE INSERT, UPDATE, DELETE ON ledger_tile, ledger_checkpoint, ledger_signer, ledger_key
    FROM tooltrail_app;
GRANT SELECT ON ledger_head TO tooltrail_keeper;
GRANT SELECT, INSERT, UPDATE (hashes) ON ledger_tile TO tooltrail_keeper;
GRANT SELECT, INSERT ON ledger_checkpoint TO tooltrail_keeper;
GRANT SELECT, INSERT, UPDATE (refusal, since) ON ledger_signer TO tooltrail_keeper;
GRANT SELECT, INSERT, UPDATE (signs_until) ON ledger_key TO tooltrail_keeper;
