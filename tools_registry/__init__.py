"""The registry of tools and their immutable versions."""
