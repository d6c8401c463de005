-- Two columns say what they hold.
ALTER TABLE tool_drift RENAME COLUMN found TO shape;           -- JSON (audit.work.drift.shape)
ALTER TABLE ledger_check RENAME COLUMN asked_by TO created_by; -- a user's name
