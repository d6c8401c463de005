"""Streams to SIEMs: create, watch, pause, replay and delete them. For admins."""
