"""Tenants, their members, roles and API keys: who may see what."""
