"""The registry as JSON: export, import, and tool definitions of providers."""
