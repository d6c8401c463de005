"""A version that has one migration more."""
