"""The first steps of a tenant: from its first key to its first alert rule."""
