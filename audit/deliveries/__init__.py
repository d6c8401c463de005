"""Deliveries: channels of a tenant, the outbox of messages, and the process that sends them."""
