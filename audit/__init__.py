"""What was called, and what was wrong with it: the log, its index and the pages over them."""
