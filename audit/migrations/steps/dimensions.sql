-- Who made a call, in what and for whom, for queries. NULL: not reported.
ALTER TABLE invocation RENAME COLUMN end_user TO principal;  -- on whose behalf; erased like a payload
ALTER TABLE invocation
    ADD COLUMN agent_version text COLLATE "C",
    ADD COLUMN environment text COLLATE "C",
    ADD COLUMN service text COLLATE "C";
