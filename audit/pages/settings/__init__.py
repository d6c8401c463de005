"""Settings of a tenant, legal holds, erasures, preferences."""
