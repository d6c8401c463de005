-- Of several signers, the one that remembers most decides whether the log is refused.
ALTER TABLE ledger_signer
    ADD COLUMN remembered_epoch integer DEFAULT 0 NOT NULL,
    ADD COLUMN remembered_size bigint DEFAULT 0 NOT NULL;
GRANT UPDATE (remembered_epoch, remembered_size) ON ledger_signer TO tooltrail_keeper;
