"""How the server is put together and run: settings, the site map, the API, the database."""
