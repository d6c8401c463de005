-- The glossary's word.
ALTER TABLE alert RENAME COLUMN told_at TO notified_at;  -- when people were last notified of it
