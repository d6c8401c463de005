-- Samples: calls that auditors draw from a population and judge, so that others can repeat the draw.

-- audit_sample: one sample: of which calls it is drawn, the draw, and who signed its conclusions. Each
-- step is an action, and names the row.
--
-- Retention: kept.
-- Erasure: no effect; it holds a query, and no payload.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE audit_sample (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,                    -- a UUIDv7: in order of time
    name text NOT NULL,
    query text NOT NULL,                 -- of the population, times as instants; '': all calls
    wanted_size integer,                 -- calls to draw; NULL: it follows from the next three
    confidence integer,                  -- in hundredths of a percent, as the next two
    tolerable integer,
    expected integer,
    salt text NOT NULL,                  -- in the digest of the columns above, which is on record
    commitment text NOT NULL,            -- SHA-256 of the auditor's nonce; '': there is none
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,            -- a user's or key's name
    state text NOT NULL,
    problem text NOT NULL,               -- why it failed
    cursor_at timestamptz,               -- how far the calls were listed
    cursor_id uuid,
    found_count bigint NOT NULL,         -- calls listed so far
    ledger_size bigint,                  -- calls whose first entry is behind it are not in the population
    call_count bigint,                   -- of the population
    population text NOT NULL,            -- its digest; '': it is not fixed yet, as size
    size integer,                        -- calls to draw
    fixed_at timestamptz,
    nonce text NOT NULL,                 -- '' before the draw, and without one
    checkpoint_size bigint,              -- of the checkpoint in the seed
    checkpoint_root text NOT NULL,
    seed text NOT NULL,
    drawn_at timestamptz,
    drawn_by text NOT NULL,
    prepared_at timestamptz,             -- when the conclusions were signed
    prepared_by text NOT NULL,
    prepared_person bigint,              -- the account of whoever signed
    reviewed_at timestamptz,
    reviewed_by text NOT NULL,
    reviewed_person bigint,
    finished_at timestamptz,             -- when it was signed by two, stopped, or failed
    CONSTRAINT audit_sample_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT audit_sample_state_check CHECK (state IN ('waiting', 'running', 'fixed', 'drawn',
        'prepared', 'signed', 'cancelled', 'failed')),
    CONSTRAINT audit_sample_size_check
        CHECK (num_nulls(confidence, tolerable, expected) = 3 * num_nonnulls(wanted_size)),
    CONSTRAINT audit_sample_people_check CHECK (prepared_person <> reviewed_person),
    CONSTRAINT audit_sample_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id)
);
ALTER TABLE audit_sample ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON audit_sample
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- A sample that somebody did not like stays on record.
REVOKE DELETE ON audit_sample FROM tooltrail_app;

-- audit_sample_part: a part of the population of a sample, as it was listed. In the order of the ledger
-- all parts together are the population.
--
-- Retention: kept: hashes and ids, by which the draw is repeated.
-- Erasure: no effect, as with the leaves of the log.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE audit_sample_part (
    tenant_id uuid NOT NULL,
    sample_id uuid NOT NULL,
    number integer NOT NULL,             -- 0, 1, …
    records bytea NOT NULL,              -- 60 bytes a call: ledger index and leaf of its first entry,
                                         -- the UTC day of its start, its id
    CONSTRAINT audit_sample_part_pkey PRIMARY KEY (tenant_id, sample_id, number),
    CONSTRAINT audit_sample_part_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT audit_sample_part_sample_fk FOREIGN KEY (tenant_id, sample_id)
        REFERENCES audit_sample (tenant_id, id) ON DELETE CASCADE
);
ALTER TABLE audit_sample_part ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON audit_sample_part
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- What was listed stays as it was.
REVOKE UPDATE, DELETE ON audit_sample_part FROM tooltrail_app;

-- audit_sample_call: a drawn call, and what the auditors conclude about it.
--
-- Retention: kept.
-- Erasure: note, exception and salt become empty, and is_erased is set; the conclusion stays.
-- Tenant deletion: rows are deleted.
-- Citus: distributed by tenant_id.
CREATE TABLE audit_sample_call (
    tenant_id uuid NOT NULL,
    sample_id uuid NOT NULL,
    position integer NOT NULL,           -- in the order of the draw: 1, 2, …
    ledger_index bigint NOT NULL,        -- of the call's first entry
    started_on date NOT NULL,            -- the call's UTC day and id
    invocation_id uuid NOT NULL,
    conclusion text NOT NULL,            -- '': there is none yet
    note text NOT NULL,
    exception text NOT NULL,             -- what does not conform
    salt text NOT NULL,                  -- in the digest of the two texts
    texts text NOT NULL,                 -- their digest; '': there is no conclusion yet
    concluded_at timestamptz,
    concluded_by text NOT NULL,
    is_erased boolean NOT NULL,
    CONSTRAINT audit_sample_call_pkey PRIMARY KEY (tenant_id, sample_id, position),
    CONSTRAINT audit_sample_call_conclusion_check
        CHECK (conclusion IN ('', 'pass', 'exception', 'unjudged')),
    CONSTRAINT audit_sample_call_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT audit_sample_call_sample_fk FOREIGN KEY (tenant_id, sample_id)
        REFERENCES audit_sample (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX audit_sample_call_call ON audit_sample_call (tenant_id, started_on, invocation_id);
ALTER TABLE audit_sample_call ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON audit_sample_call
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
-- What was drawn stays drawn.
REVOKE UPDATE, DELETE ON audit_sample_call FROM tooltrail_app;
GRANT UPDATE (conclusion, note, exception, salt, texts, concluded_at, concluded_by)
    ON audit_sample_call TO tooltrail_app;
GRANT SELECT, UPDATE (note, exception, salt, is_erased) ON audit_sample_call TO tooltrail_keeper;
