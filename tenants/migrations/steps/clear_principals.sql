ALTER TABLE tenant_setting ADD COLUMN clear_principals boolean DEFAULT false NOT NULL;
