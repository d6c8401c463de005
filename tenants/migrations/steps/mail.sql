ALTER TABLE invitation ADD COLUMN email varchar(254) DEFAULT '' NOT NULL;
GRANT UPDATE (email) ON app_user TO tooltrail_app;
