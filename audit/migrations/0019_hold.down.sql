REVOKE SELECT, UPDATE (raw) ON rejected_event FROM tooltrail_keeper;
ALTER TABLE ledger_check DROP missing;
REVOKE SELECT, UPDATE (erased_to) ON tenant_setting FROM tooltrail_keeper;
REVOKE INSERT, UPDATE ON ledger_head FROM tooltrail_keeper;
REVOKE INSERT ON batch, action FROM tooltrail_keeper;
REVOKE SELECT ON invocation FROM tooltrail_keeper;
DROP TABLE ledger_erasure, legal_hold;
