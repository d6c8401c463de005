DELETE FROM membership WHERE is_service;
ALTER TABLE membership
    DROP CONSTRAINT membership_service_check,
    DROP COLUMN is_service,
    DROP COLUMN disabled_at;
