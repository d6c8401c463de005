ALTER TABLE alert RENAME COLUMN notified_at TO told_at;
