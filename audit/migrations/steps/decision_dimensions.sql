-- Who would have made a call that was decided about, and in what. NULL: not reported.
ALTER TABLE decision
    ADD COLUMN agent text COLLATE "C",
    ADD COLUMN agent_version text COLLATE "C",
    ADD COLUMN model text COLLATE "C",
    ADD COLUMN provider text COLLATE "C",
    ADD COLUMN environment text COLLATE "C",
    ADD COLUMN service text COLLATE "C";
