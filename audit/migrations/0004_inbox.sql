-- What became of a refused line: sent again, or discarded, by whom and why. Nothing is deleted,
-- and of a row only this changes.
ALTER TABLE rejected_event
    ADD resolution text,                 -- NULL: nobody has dealt with it yet
    ADD resolved_at timestamptz,
    ADD resolved_by_id bigint,
    ADD resolved_by_name text,           -- copied: survives the account
    ADD discard_reason text,
    ADD redrive_batch_id uuid,           -- the batch it was sent again as
    ADD redrive_edited boolean,          -- whether it was changed before
    ADD CONSTRAINT rejected_event_resolution_check CHECK (
        resolution IN ('accepted', 'duplicate', 'refused', 'discarded')
        AND num_nulls(resolved_at, resolved_by_name) = 0
        AND (resolution = 'discarded') = (discard_reason IS NOT NULL)
        AND (resolution = 'discarded') = (redrive_batch_id IS NULL)
        AND num_nulls(redrive_batch_id, redrive_edited) IN (0, 2)
        OR num_nonnulls(resolution, resolved_at, resolved_by_id, resolved_by_name,
                        discard_reason, redrive_batch_id, redrive_edited) = 0
    );

-- Ids are in order of time: the primary key pages. Those not dealt with are few and counted on
-- every page; of many codes one may be rare.
DROP INDEX rejected_event_tenant_received_idx;
CREATE INDEX rejected_event_tenant_open_idx ON rejected_event (tenant_id, id)
    WHERE resolution IS NULL;
CREATE INDEX rejected_event_tenant_code_idx ON rejected_event (tenant_id, code, id);

REVOKE UPDATE, DELETE ON rejected_event FROM tooltrail_app;
GRANT UPDATE (
    resolution, resolved_at, resolved_by_id, resolved_by_name, discard_reason, redrive_batch_id,
    redrive_edited
) ON rejected_event TO tooltrail_app;
