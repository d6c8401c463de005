-- What the ledger proves of a tenant's rows: each action names those it changed.
ALTER TABLE action
    ADD COLUMN rows jsonb NOT NULL DEFAULT '{}';  -- SHA-256 by table/id; null: the row is gone
