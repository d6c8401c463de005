"""Adapters: each records the tool calls of one framework through the framework's own hooks.

`tooltrail` itself imports none of them, and none of the frameworks. A tool that an adapter records
needs no `@trail.tool`: with both, each call is recorded twice, one within the other.
"""
