ALTER TABLE membership
    DROP CONSTRAINT membership_provider_check,
    DROP CONSTRAINT membership_glass_check,
    DROP COLUMN installation_provider_id,
    ADD CONSTRAINT membership_provider_check
        CHECK (identity_provider_id IS NULL OR NOT is_service),
    ADD CONSTRAINT membership_glass_check
        CHECK (NOT breaks_glass OR role = 'admin' AND identity_provider_id IS NULL);
DROP TABLE installation_provider;
