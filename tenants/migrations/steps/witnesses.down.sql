ALTER TABLE tenant_setting
    DROP COLUMN witnesses, DROP COLUMN witnesses_needed, DROP COLUMN timestamp_url;
