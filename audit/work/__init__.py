"""Long jobs of the worker: payload searches, replays, drift, the inbox, seen tools."""
