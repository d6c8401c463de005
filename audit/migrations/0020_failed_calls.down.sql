DROP INDEX invocation_tool_violating_idx;
DROP INDEX invocation_violating_idx;
DROP INDEX invocation_tool_failed_idx;
DROP INDEX invocation_failed_idx;
