DROP TABLE producer, rejected_event, ledger_head, batch;
