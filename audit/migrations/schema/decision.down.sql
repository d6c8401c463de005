DROP POLICY nothing_left ON trace;
CREATE POLICY nothing_left ON trace AS RESTRICTIVE FOR DELETE USING (started_count = 0);
ALTER TABLE trace DROP COLUMN decision_count;
DROP TABLE decision;
