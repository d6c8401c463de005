"""What sets a selection of calls apart from the rest of a range.

`rules` compares values that both sides have, `terms` says which queries lead to their calls; both
are pure. `finding` reads the calls and applies the rules.
"""
