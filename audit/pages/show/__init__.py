"""What several screens share: range bar, reveal, the router of the read API."""
