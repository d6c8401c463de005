ALTER TABLE tenant_setting
    ADD COLUMN witnesses jsonb DEFAULT '[]'::jsonb NOT NULL,
    ADD COLUMN witnesses_needed integer DEFAULT 0 NOT NULL,
    ADD COLUMN timestamp_url text DEFAULT '' NOT NULL;
