-- Who has revealed a payload, asked whenever an auditor opens it; of all actions a few.
CREATE INDEX action_tenant_reveal_idx ON action (tenant_id, subject, at)
    WHERE verb = 'call.reveal' OR verb = 'inbox.reveal';  -- IN is worded anew by each restore
