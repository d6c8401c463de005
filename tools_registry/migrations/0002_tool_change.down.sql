DROP TABLE tool_change, tool_draft;
ALTER TABLE tool
    DROP COLUMN current_number,
    DROP COLUMN change_count,
    DROP COLUMN owner,
    DROP COLUMN link,
    DROP COLUMN tags,
    DROP COLUMN meta;
