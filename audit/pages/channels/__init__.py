"""Channels of alerts: where they are sent, and what was delivered. For admins."""
