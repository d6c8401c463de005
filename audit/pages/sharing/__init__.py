"""Share links: made on the pages that they show, listed, revoked, and opened."""
