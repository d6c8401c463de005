-- Whether the tenant's log has its baseline: the entry with the digests of all rows that actions name
-- from then on. If somebody resets this, the log gets a second one, which the check reports.
ALTER TABLE ledger_head
    ADD COLUMN has_baseline boolean NOT NULL DEFAULT false;
