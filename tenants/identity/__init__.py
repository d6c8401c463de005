"""Sign-in with a company's identity provider: roles by group, members made by it.

An identity is (provider, subject), never an address or a name, and a provider belongs to a tenant.
django-allauth carries OpenID Connect, python3-saml carries SAML; this package decides whom it lets in, and records it
(docs/adr/0041-identity-providers.md).
"""
