DROP TABLE polling_tool;
