"""Records the calls of any MCP server from between its client and it, without changing either.

Owns the recorder of `tooltrail mcp`: `messages` finds the messages in the bytes that pass,
`session` says what they mean and records it, `stdio` and `http` pass the bytes.
"""
