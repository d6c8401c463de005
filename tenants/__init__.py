"""Who may see what: tenants, their members and their API keys."""
