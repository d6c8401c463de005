DROP TABLE gap, producer, rejected_event, ledger_head, batch;
