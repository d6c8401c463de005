ALTER TABLE membership
    ADD COLUMN is_service boolean DEFAULT false NOT NULL,
    ADD COLUMN disabled_at timestamptz,
    ADD CONSTRAINT membership_service_check
        CHECK (is_service AND role = 'viewer' OR NOT is_service AND disabled_at IS NULL);
