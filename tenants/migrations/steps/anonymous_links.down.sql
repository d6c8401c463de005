ALTER TABLE tenant DROP COLUMN anonymous_links;
