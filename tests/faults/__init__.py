"""The SDK against the real server while things go wrong: nothing may be lost unsaid.

Every run ends in `conservation.assert_conserved`. The short form runs with the other tests;
`--full` takes the numbers the project promises (200 kills, ten minutes without a server …).
"""
