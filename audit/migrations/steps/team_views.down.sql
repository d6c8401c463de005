DROP TABLE page_choice;
DELETE FROM saved_view WHERE page <> 'calls';
ALTER TABLE saved_view DROP COLUMN is_shared, DROP COLUMN page;
