-- For databases that were created before app_user had this constraint (people.sql). The flag gave no
-- access, so accounts that have it lose nothing.
UPDATE app_user SET is_superuser = false WHERE is_superuser;
ALTER TABLE app_user
    DROP CONSTRAINT IF EXISTS app_user_superuser_check,
    ADD CONSTRAINT app_user_superuser_check CHECK (NOT is_superuser);
