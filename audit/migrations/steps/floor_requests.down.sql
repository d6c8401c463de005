ALTER TABLE erasure DROP COLUMN created_person;
DROP TABLE floor_request;
