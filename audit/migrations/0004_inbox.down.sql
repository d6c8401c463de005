DROP INDEX rejected_event_tenant_open_idx, rejected_event_tenant_code_idx;
CREATE INDEX rejected_event_tenant_received_idx ON rejected_event (tenant_id, received_at);
ALTER TABLE rejected_event
    DROP resolution,
    DROP resolved_at,
    DROP resolved_by_id,
    DROP resolved_by_name,
    DROP discard_reason,
    DROP redrive_batch_id,
    DROP redrive_edited;
GRANT UPDATE, DELETE ON rejected_event TO tooltrail_app;
