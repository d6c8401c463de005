"""The command line `tooltrail`: the spool, queries, verification of evidence."""
