DROP TABLE witness_answer;
