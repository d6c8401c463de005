-- The keys that signed statements about entries: a few of all actions.
CREATE INDEX action_tenant_statement_key_idx ON action (tenant_id, at)
    WHERE verb = 'ledger.statement_key';
