ALTER TABLE tool_import
    DROP CONSTRAINT tool_import_state_check,
    NO FORCE ROW LEVEL SECURITY;
UPDATE tool_import SET state = CASE state
    WHEN 'previewing' THEN 'looking' WHEN 'previewed' THEN 'looked_at' ELSE state END;
ALTER TABLE tool_import
    ADD CONSTRAINT tool_import_state_check
        CHECK (state IN ('looking', 'looked_at', 'importing', 'done', 'cancelled')),
    FORCE ROW LEVEL SECURITY;
