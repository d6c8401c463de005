ALTER TABLE tenant_setting DROP COLUMN floor_days;
