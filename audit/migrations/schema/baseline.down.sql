ALTER TABLE ledger_head DROP COLUMN has_baseline;
