"""Schema violations."""
