ALTER TABLE membership DROP COLUMN identity_provider_id;
DROP TABLE identity_provider;
