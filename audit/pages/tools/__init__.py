"""Tools as calls show them: drafts, replays, drift, effect."""
