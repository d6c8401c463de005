"""The palette: go to a page, tool, trace, call or saved view by typing a part of its name."""
