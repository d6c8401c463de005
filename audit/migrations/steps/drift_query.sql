-- Of which calls an analysis of drift is, without times; '': of all calls of the tool.
ALTER TABLE tool_drift ADD COLUMN query text DEFAULT '' NOT NULL;
