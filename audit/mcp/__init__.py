"""The MCP server at `/mcp`: agents ask their own traces (docs/adr/0046).

`transport` reads HTTP, `protocol` the messages of all protocol versions, `methods` answers them.
`tools` are the operations of the read API, each with an output schema; `answers` marks what agents
and tools wrote, and fits it into a budget of tokens. Every use is counted (`audit.work.mcp_uses`).
"""
