"""SCIM 2.0 (RFC 7643, RFC 7644): a provider's directory sends its people and groups.

scim2-models reads and writes the protocol's documents: filters, PATCH, schemas. What a change means
is in `tenants.identity.directory`.
"""
