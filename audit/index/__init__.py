"""The index of the log: how events become calls, counts and sums; rebuilding it."""
