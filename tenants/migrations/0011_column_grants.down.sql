GRANT INSERT, UPDATE, DELETE ON
    auth_group, auth_group_permissions, auth_permission, app_user_groups,
    app_user_user_permissions, django_admin_log, django_content_type, django_migrations
    TO tooltrail_app;
REVOKE UPDATE (session_data, expire_date) ON django_session FROM tooltrail_app;
GRANT UPDATE ON django_session, sign_in_failure TO tooltrail_app;
REVOKE UPDATE (
    password, last_login, is_staff, is_active, time_zone, theme, default_range, last_tenant_id,
    has_initial_password
) ON app_user FROM tooltrail_app;
GRANT UPDATE, DELETE ON app_user TO tooltrail_app;
REVOKE UPDATE (name, time_zone, suspended_at) ON tenant FROM tooltrail_app;
GRANT UPDATE ON tenant TO tooltrail_app;
