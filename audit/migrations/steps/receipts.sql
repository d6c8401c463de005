-- The roots of checkpoints, signed for readers of COSE.
ALTER TABLE ledger_checkpoint ADD COLUMN receipts bytea[] DEFAULT '{}'::bytea[] NOT NULL;
