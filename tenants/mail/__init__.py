"""Mails to people: invitations, and links for passwords and addresses. Optional.

The worker sends them, so no page waits for a mail server. A mail waits encrypted in the worker's
queue, because its link is a secret. Alerts have channels of their own (`audit.deliveries`).
"""
