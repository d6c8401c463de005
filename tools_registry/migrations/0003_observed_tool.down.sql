DROP TABLE observed_tool;
