DROP INDEX invocation_error_code_idx;
