ALTER TABLE decision
    DROP COLUMN agent,
    DROP COLUMN agent_version,
    DROP COLUMN model,
    DROP COLUMN provider,
    DROP COLUMN environment,
    DROP COLUMN service;
