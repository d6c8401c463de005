"""Sign-in, joining a tenant, tenant switcher, keys and members."""

from django.urls import path

from tenants import joining, views

urlpatterns = [
    path("login", views.sign_in, name="login"),
    path("logout", views.sign_out, name="logout"),
    path("switch-tenant", views.tenant_switch, name="tenant_switch"),
    path("invitations/<str:token>", joining.invitation_accept, name="invitation_accept"),
    # /settings
    path("settings/keys", views.key_list, name="key_list"),
    path("settings/keys/<uuid:pk>/revoke", views.key_revoke, name="key_revoke"),
    path("settings/keys/<uuid:pk>/rotate", views.key_rotate, name="key_rotate"),
    path("settings/members", views.member_list, name="member_list"),
    path("settings/members/<uuid:pk>/role", views.member_role, name="member_role"),
    path("settings/members/<uuid:pk>/remove", views.member_remove, name="member_remove"),
    path(
        "settings/members/invitations/<uuid:pk>/revoke",
        views.invitation_revoke,
        name="invitation_revoke",
    ),
    path("settings/password", views.password_change, name="password_change"),
]
