"""The routes of forgotten passwords and of addresses."""

from django.urls import path

from tenants.passwords import views

urlpatterns = [
    path("password/forgotten", views.password_forgotten, name="password_forgotten"),
    path("password/new/<str:uidb64>/<str:token>", views.password_reset, name="password_reset"),
    path("settings/security/address", views.account_address, name="account_address"),
    path("settings/security/address/<str:token>", views.address_confirm, name="address_confirm"),
]
