DROP INDEX invocation_orphan_idx;
