"""How the tool calls of real frameworks arrive: `python -m bench.frameworks`."""
