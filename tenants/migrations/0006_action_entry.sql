-- Which entry of its tenant's ledger an action became: NULL until the worker entered it.
ALTER TABLE action ADD ledger_index bigint;
CREATE UNIQUE INDEX action_tenant_ledger_index_uniq ON action (tenant_id, ledger_index);
GRANT UPDATE (ledger_index) ON action TO tooltrail_app;
