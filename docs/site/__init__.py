"""The documentation as static files: `uv run --group docs python -m docs.site`.

Sphinx, because its pages need no inline scripts and styles after two small templates are replaced.
Material for MkDocs and Zensical have such scripts in many templates, and the policy forbids them.
"""
