DROP TABLE ledger_key, ledger_signer, ledger_checkpoint, ledger_tile;
REVOKE SELECT ON ledger_head FROM tooltrail_keeper;
ALTER TABLE batch DROP is_own;
