ALTER TABLE ledger_checkpoint DROP COLUMN receipts;
