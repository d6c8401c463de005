-- The states of an import before it is confirmed are called as on pages and in the API.
ALTER TABLE tool_import
    DROP CONSTRAINT tool_import_state_check,
    NO FORCE ROW LEVEL SECURITY;
UPDATE tool_import SET state = CASE state
    WHEN 'looking' THEN 'previewing' WHEN 'looked_at' THEN 'previewed' ELSE state END;
ALTER TABLE tool_import
    ADD CONSTRAINT tool_import_state_check
        CHECK (state IN ('previewing', 'previewed', 'importing', 'done', 'cancelled')),
    FORCE ROW LEVEL SECURITY;
