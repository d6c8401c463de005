"""Identity providers for tests: a real one from npm, and a hostile one."""
