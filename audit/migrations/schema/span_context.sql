-- What spans report about the calls below them, which may be stored earlier or later. Names of
-- agents, conversations, models and users, as in the events of these calls.
ALTER TABLE otlp_span ADD COLUMN context text;  -- a JSON object; NULL: it says nothing
-- The spans right below one that comes later: now also those that are no calls.
DROP INDEX otlp_span_parent_idx;
CREATE INDEX otlp_span_parent_idx ON otlp_span (tenant_id, started_on, parent_uuid);
