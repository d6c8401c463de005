-- Two kinds of decisions are asked for over the whole index: requests for approvals, to find those
-- without an answer, and rejected arguments, to find when a kind of violation was first seen.

-- Requests for approvals, by time.
CREATE INDEX decision_awaiting_idx ON decision (tenant_id, decided_at, decision_id)
    WHERE decision = 'awaiting';
-- Rejected arguments, by time.
CREATE INDEX decision_rejected_idx ON decision (tenant_id, decided_at, decision_id)
    WHERE decision = 'rejectedArguments';
