ALTER TABLE served_definition
    DROP COLUMN approved_during,
    DROP COLUMN withdrawn_at,
    DROP COLUMN withdrawn_by,
    DROP COLUMN withdrawal_reason;
