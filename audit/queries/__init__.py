"""All queries of the index; a module here and a file of audit/sql share a name."""
