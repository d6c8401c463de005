"""The archive: sealed days in storage outside the database, readable and provable without it.

Two buckets. The first has what erasure never clears, and ciphertexts, under object lock. The second
has a key for each payload, and nothing there is locked: destroying a key erases the payload.
"""
