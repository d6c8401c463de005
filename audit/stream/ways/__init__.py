"""The ways by which records leave. No database, no clock but for time limits."""
