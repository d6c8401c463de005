REVOKE SELECT, UPDATE (raw) ON rejected_event FROM tooltrail_keeper;
DROP TABLE tombstone, tenant_setting;
ALTER TABLE api_key DROP replaced_by_id;
