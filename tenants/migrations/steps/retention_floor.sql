ALTER TABLE tenant_setting
    ADD COLUMN floor_days integer,
    ADD CONSTRAINT tenant_setting_floor_check
        CHECK (floor_days >= 183 AND payload_days >= floor_days AND index_days >= floor_days);
