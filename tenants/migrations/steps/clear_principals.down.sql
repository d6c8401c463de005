ALTER TABLE tenant_setting DROP COLUMN clear_principals;
