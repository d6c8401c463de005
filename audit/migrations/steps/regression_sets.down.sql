DROP TABLE tool_regression_case;
DROP TABLE tool_regression;
