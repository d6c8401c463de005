"""Sign-in with a company's identity provider: roles by group, members made by it.

An identity is (provider, subject), never an address or a name, and a provider belongs to a tenant.
django-allauth carries OpenID Connect, and python3-saml SAML 2.0. This package decides whom they let
in, and records it (docs/adr/0041-identity-providers.md).
"""
