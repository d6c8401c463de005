-- Grants on the tables that Django's own apps make. They have no tenant_id and hence no row-level
-- security: the application may write what it does write, and no more.

-- Sessions: the key of one never changes.
REVOKE UPDATE ON django_session FROM tooltrail_app;
GRANT UPDATE (session_data, expire_date) ON django_session TO tooltrail_app;

-- Unused: roles are memberships, and what people did is in `action`.
REVOKE INSERT, UPDATE, DELETE ON
    auth_group, auth_group_permissions, auth_permission, django_admin_log, django_content_type,
    django_migrations
    FROM tooltrail_app;
