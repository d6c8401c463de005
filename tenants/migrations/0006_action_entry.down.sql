REVOKE UPDATE (ledger_index) ON action FROM tooltrail_app;
DROP INDEX action_tenant_ledger_index_uniq;
ALTER TABLE action DROP ledger_index;
