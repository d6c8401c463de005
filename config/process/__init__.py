"""Processes: `up`, the supervisor, web servers, backups, operator commands."""
