"""How people prove who they are: second factors, passkeys, sessions. django-allauth does the rest.

django-allauth carries the protocols and the steps of a sign-in; its tables are in
`tenants/migrations/schema/sign_in_tables.sql`, its pages in `templates/mfa` and
`templates/account`. This package decides what it may do here, and records it.
"""
