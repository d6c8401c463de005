ALTER TABLE ledger_signer
    DROP COLUMN remembered_epoch,
    DROP COLUMN remembered_size;
