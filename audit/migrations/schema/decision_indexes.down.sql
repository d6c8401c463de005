DROP INDEX decision_awaiting_idx, decision_rejected_idx;
