-- Agent, model, provider and user of a call, as spans report them, for queries.
ALTER TABLE invocation
    ADD COLUMN agent text COLLATE "C",     -- NULL: not reported
    ADD COLUMN model text COLLATE "C",
    ADD COLUMN provider text COLLATE "C",
    ADD COLUMN end_user text COLLATE "C";  -- for whom the agent works
