"""Assembly and operation of the server: settings, URLs, the API, the database."""
