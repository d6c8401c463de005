-- Policies compare columns of their own row only. Citus does not distribute a table whose policy has
-- a subquery.

-- Of violations, the application may delete what the server found, never what an executor reported.
DROP POLICY found_in_spans ON violation;
CREATE POLICY found_by_server ON violation AS RESTRICTIVE FOR DELETE USING (found_by = 'server');

-- Of calls, it may delete those that it has marked as absorbed.
ALTER TABLE invocation
    ADD COLUMN absorbed boolean;         -- true: part of another call, and deleted next; else NULL
DROP POLICY merged_elsewhere ON invocation;
CREATE POLICY absorbed ON invocation AS RESTRICTIVE FOR DELETE USING (absorbed);
