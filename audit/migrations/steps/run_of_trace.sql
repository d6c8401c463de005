-- When the call began whose run a trace has. NULL: written by an older version.
ALTER TABLE trace ADD COLUMN run_at timestamptz;
