DROP TABLE ledger_check;
