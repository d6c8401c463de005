"""Alerts: rules, their evaluation, and the life of an alert.

`rules` says what a rule is, `judging` when it holds: both are pure. `evaluation` reads what the
rules watch, opens alerts and ends them; `trial` does the same on the past and changes nothing.
"""
