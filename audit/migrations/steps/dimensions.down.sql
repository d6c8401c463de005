ALTER TABLE invocation
    DROP COLUMN agent_version,
    DROP COLUMN environment,
    DROP COLUMN service;
ALTER TABLE invocation RENAME COLUMN principal TO end_user;
