"""Price lists: saving them, and counting the units that results report (docs/adr/0040)."""
