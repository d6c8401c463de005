"""The API, asked whatever its own description allows and forbids."""
