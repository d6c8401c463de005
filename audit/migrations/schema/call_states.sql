-- States of calls besides open, ok and failed (docs/adr/0028). A call that waits for input or works
-- on as a task has no end yet; one that was cancelled has ended and neither succeeded nor failed.

ALTER TABLE invocation
    DROP CONSTRAINT invocation_state_check,
    ADD CONSTRAINT invocation_state_check CHECK (
        state IN ('open', 'waiting', 'working', 'ok', 'failed', 'cancelled')
        AND (state IN ('open', 'waiting', 'working')) = (end_batch_id IS NULL)
    ),
    ADD COLUMN interim_state text,       -- waiting | working: by its latest interim end event
    ADD COLUMN interim_at timestamptz,   -- when that was
    ADD COLUMN interim_us bigint[],      -- when the latest 200 were, in µs since 1970, sorted
    ADD COLUMN interim_batch_id uuid,    -- where that event is in the log
    ADD COLUMN interim_pos integer;      -- its position in the batch, from 0
-- cancelled calls. They are in no sum of calls but this one of their trace.
CREATE INDEX invocation_cancelled_idx ON invocation (tenant_id, started_at)
    WHERE state = 'cancelled';
ALTER TABLE trace ADD COLUMN cancelled_count bigint DEFAULT 0 NOT NULL;
