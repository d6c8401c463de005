ALTER TABLE api_key
    ADD COLUMN owner_id bigint,
    ADD COLUMN purpose varchar(300) DEFAULT '' NOT NULL,
    ADD COLUMN allowed_addresses varchar(43)[] DEFAULT '{}' NOT NULL,
    ADD CONSTRAINT api_key_owner_fk
        FOREIGN KEY (owner_id) REFERENCES app_user (id) ON DELETE SET NULL;
