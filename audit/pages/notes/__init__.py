"""Notes: the list, one note, and the notes on the pages of what they are about."""
