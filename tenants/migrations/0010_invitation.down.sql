ALTER TABLE app_user DROP last_tenant_id;
DROP TABLE invitation;
