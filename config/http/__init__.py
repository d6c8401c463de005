"""HTTP for all apps: problems, errors, htmx, static files, templates."""
