DROP TABLE tool_drift;
