"""The audit log: what members did."""
