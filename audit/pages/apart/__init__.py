"""What sets a selection of calls apart."""
