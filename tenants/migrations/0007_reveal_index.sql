-- Who has revealed a payload, asked whenever an auditor opens it; of all actions a few.
CREATE INDEX action_tenant_reveal_idx ON action (tenant_id, subject, at)
    WHERE verb IN ('call.reveal', 'inbox.reveal');
