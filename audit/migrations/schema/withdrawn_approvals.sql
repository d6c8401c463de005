-- An approval of a definition may be withdrawn. Calls that were made while it was in force stay calls
-- under an approved definition.
ALTER TABLE served_definition
    ADD COLUMN approved_during tstzmultirange DEFAULT '{}' NOT NULL,  -- by approvals now withdrawn
    ADD COLUMN withdrawn_at timestamptz,     -- the last of them
    ADD COLUMN withdrawn_by text,            -- a user's or key's name
    ADD COLUMN withdrawal_reason text;
