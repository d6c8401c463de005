"""Evidence bundles for download."""
