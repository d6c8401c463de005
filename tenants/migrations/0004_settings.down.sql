DROP TABLE tombstone, tenant_setting;
ALTER TABLE api_key DROP replaced_by_id;
