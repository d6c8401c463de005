DROP TABLE tool_import_tool;
DELETE FROM tool_import;
ALTER TABLE tool_import
    DROP COLUMN forms,
    DROP COLUMN note,
    DROP COLUMN is_large,
    DROP COLUMN as_drafts,
    DROP COLUMN state,
    DROP COLUMN tool_count,
    DROP COLUMN done_count,
    DROP COLUMN user_id,
    DROP COLUMN user_name,
    DROP COLUMN key_id,
    DROP COLUMN reason,
    DROP COLUMN finished_at,
    ADD COLUMN document text NOT NULL;
REVOKE UPDATE ON tool_import FROM tooltrail_app;
