"""Values for pages and reports: figures, charts, JSON trees, safe text. Pure."""
