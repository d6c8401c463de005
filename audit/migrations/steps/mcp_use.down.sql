DROP TABLE mcp_use;
