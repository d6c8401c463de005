ALTER TABLE invitation DROP COLUMN email;
REVOKE UPDATE (email) ON app_user FROM tooltrail_app;
