"""An auditor's sample of calls: pure rules, and the check of a sample in an evidence bundle.

`selection` says which calls of a population are drawn, `attributes` how many, and what errors in
them mean. `layout` has the members of a bundle. docs/sampling.md specifies all of it.
"""
