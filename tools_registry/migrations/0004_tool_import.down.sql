DROP TABLE tool_import;
