DROP TABLE tool_version, tool;
