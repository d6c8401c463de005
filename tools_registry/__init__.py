"""What may be called: tools and their immutable versions."""
