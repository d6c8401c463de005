-- What witnesses of ledgers answered.
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
