"""An ingest key in the right form, for servers that do not check it."""

KEY = "tt_0198c0de000070008000000000000001_key1_secret_crc"
