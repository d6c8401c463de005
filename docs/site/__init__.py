"""The documentation as static files: `uv run --group docs python -m docs.site`."""
