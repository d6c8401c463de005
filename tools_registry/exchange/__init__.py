"""The registry as JSON: what leaves it, what comes in, and other people's tool definitions."""
