"""What leaves: retention, erasures, legal holds."""
