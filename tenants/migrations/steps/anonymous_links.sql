ALTER TABLE tenant ADD COLUMN anonymous_links boolean DEFAULT false NOT NULL;
GRANT UPDATE (anonymous_links) ON tenant TO tooltrail_app;
