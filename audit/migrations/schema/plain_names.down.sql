ALTER TABLE tool_drift RENAME COLUMN shape TO found;
ALTER TABLE ledger_check RENAME COLUMN created_by TO asked_by;
