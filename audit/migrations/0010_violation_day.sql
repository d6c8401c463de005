-- What breaks where, by UTC day: violations are read by kind, and there are few kinds. As texts
-- may be longer than an index takes, a kind is known by the hash of its texts.
CREATE TABLE violation_day (
    tenant_id uuid NOT NULL,
    started_on date NOT NULL,
    kind uuid NOT NULL,                  -- the first half of SHA-256 of the six texts
    tool_name text COLLATE "C" NOT NULL,
    tool_version text COLLATE "C" NOT NULL,
    path_pattern text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    strategy text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    violation_count bigint NOT NULL,
    call_count bigint NOT NULL,          -- calls with such a violation
    first_at timestamptz NOT NULL,       -- when the first and the last of those calls started
    last_at timestamptz NOT NULL,
    CONSTRAINT violation_day_pkey PRIMARY KEY (tenant_id, started_on, kind)
) PARTITION BY RANGE (started_on);

-- What is there already, for days that have partitions; those are made as audit/index/partitions.py does.
DO $$
DECLARE
    partition record;
    name text;
BEGIN
    FOR partition IN
        SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bounds
        FROM pg_inherits AS i
        JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'violation'::regclass
    LOOP
        name := replace(partition.relname, 'violation_', 'violation_day_');
        EXECUTE format('CREATE TABLE %I PARTITION OF violation_day %s', name, partition.bounds);
        EXECUTE format('REVOKE ALL ON %I FROM tooltrail_app', name);
        EXECUTE format(
            'ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name
        );
    END LOOP;
END
$$;
ALTER TABLE violation NO FORCE ROW LEVEL SECURITY;
INSERT INTO violation_day
SELECT tenant_id, started_on,
       encode(substring(sha256(
           convert_to(tool_name, 'UTF8') || '\x00'
           || convert_to(tool_version, 'UTF8') || '\x00'
           || convert_to(path_pattern, 'UTF8') || '\x00'
           || convert_to(code, 'UTF8') || '\x00'
           || convert_to(strategy, 'UTF8') || '\x00'
           || convert_to(outcome, 'UTF8')
       ) FROM 1 FOR 16), 'hex')::uuid,
       tool_name, tool_version, path_pattern, code, strategy, outcome,
       count(*), count(DISTINCT invocation_id), min(started_at), max(started_at)
FROM violation
GROUP BY tenant_id, started_on, tool_name, tool_version, path_pattern, code, strategy, outcome;
ALTER TABLE violation FORCE ROW LEVEL SECURITY;

ALTER TABLE violation_day ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON violation_day
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);

REVOKE DELETE ON violation_day FROM tooltrail_app;
