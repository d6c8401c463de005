DROP TABLE tool_replay;
