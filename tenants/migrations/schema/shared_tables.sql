-- Grants on the tables that all tenants share. They have no tenant_id and hence no row-level
-- security, so the application may write only the columns that it needs. Django's own apps create
-- some of them, and need app_user first; so this is a separate migration.

-- A tenant's slug and id never change. Its admin and an operator set the other columns.
REVOKE UPDATE ON tenant FROM tooltrail_app;
GRANT UPDATE (
    name, time_zone, suspended_at, second_factor_roles, step_up, session_idle_minutes,
    session_max_hours, sso_only, anonymous_links
) ON tenant TO tooltrail_app;

-- An account is never renamed or deleted. Nobody is a superuser (a constraint of app_user). is_staff
-- opens nothing by itself: the admin site asks for the role in the tenant, too.
REVOKE UPDATE, DELETE ON app_user FROM tooltrail_app;
GRANT UPDATE (
    password, last_login, is_staff, is_active, time_zone, theme, default_range, last_tenant_id,
    has_initial_password, email
) ON app_user TO tooltrail_app;

-- Failed sign-ins are counted and deleted. A session's key never changes.
REVOKE UPDATE ON django_session, sign_in_failure FROM tooltrail_app;
GRANT UPDATE (session_data, expire_date) ON django_session TO tooltrail_app;

-- Unused: roles are memberships, and what people did is in `action`.
REVOKE INSERT, UPDATE, DELETE ON
    auth_group, auth_group_permissions, auth_permission, app_user_groups,
    app_user_user_permissions, django_admin_log, django_content_type, django_migrations
    FROM tooltrail_app;
