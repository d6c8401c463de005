"""Saved views and chosen columns of pages: saved, renamed, shared, deleted, made the default."""
