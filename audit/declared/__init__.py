"""Configuration as files: what `manage.py apply` makes of them, and `export-config` writes.

Each change goes through the function that pages and API use, so it leaves the same action.
"""
