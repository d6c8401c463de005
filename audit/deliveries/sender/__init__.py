"""The process that sends messages. It imports neither Django nor the database (docs/adr/0036)."""
