ALTER TABLE api_key
    DROP COLUMN owner_id,
    DROP COLUMN purpose,
    DROP COLUMN allowed_addresses;
