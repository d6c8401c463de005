-- Who took part in an MCP call, for queries.
ALTER TABLE invocation
    ADD COLUMN mcp_server text COLLATE "C",    -- name and version; NULL: not reported
    ADD COLUMN mcp_client text COLLATE "C",
    ADD COLUMN mcp_protocol text COLLATE "C";  -- the protocol's version
