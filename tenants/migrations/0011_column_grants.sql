-- Tables without row-level security are every tenant's: of them the application may write just
-- what it does write. Rows of a tenant have their policies; new tables of Django get all by default.

-- A tenant's slug and id never change; what its admin and an operator set does.
REVOKE UPDATE ON tenant FROM tooltrail_app;
GRANT UPDATE (name, time_zone, suspended_at) ON tenant TO tooltrail_app;

-- Who somebody is stays; nobody becomes a superuser, and no account goes.
REVOKE UPDATE, DELETE ON app_user FROM tooltrail_app;
GRANT UPDATE (
    password, last_login, is_staff, is_active, time_zone, theme, default_range, last_tenant_id,
    has_initial_password
) ON app_user TO tooltrail_app;

REVOKE UPDATE ON django_session, sign_in_failure FROM tooltrail_app;
GRANT UPDATE (session_data, expire_date) ON django_session TO tooltrail_app;

-- Django's own, which nothing of ours writes: roles are memberships, and who did what an action.
REVOKE INSERT, UPDATE, DELETE ON
    auth_group, auth_group_permissions, auth_permission, app_user_groups,
    app_user_user_permissions, django_admin_log, django_content_type, django_migrations
    FROM tooltrail_app;
