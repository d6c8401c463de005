ALTER TABLE tool_drift DROP COLUMN query;
