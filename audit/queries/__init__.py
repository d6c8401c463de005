"""Every question to the index; a module here and a file of audit/sql share a name."""
