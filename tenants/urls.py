"""Sign-in, joining a tenant, tenant switcher, keys, members and service accounts."""

from django.urls import path

from tenants import joining, service_views, views
from tenants.accounts.urls import urlpatterns as accounts
from tenants.identity.urls import urlpatterns as identity
from tenants.passwords.urls import urlpatterns as passwords
from tenants.scim.urls import urlpatterns as scim

urlpatterns = [
    path("login", views.sign_in, name="account_login"),
    path("sign-in/<slug:slug>", views.tenant_sign_in, name="tenant_sign_in"),
    path("logout", views.sign_out, name="account_logout"),
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
    path("settings/service-accounts", service_views.service_list, name="service_list"),
    path(
        "settings/service-accounts/<uuid:pk>/disable",
        service_views.service_disable,
        name="service_disable",
    ),
    path(
        "settings/service-accounts/<uuid:pk>/enable",
        service_views.service_enable,
        name="service_enable",
    ),
    path(
        "settings/service-accounts/<uuid:pk>/delete",
        service_views.service_delete,
        name="service_delete",
    ),
    path("settings/password", views.password_change, name="password_change"),
    *accounts,
    *passwords,
    *identity,
    *scim,
]
