DROP TABLE llm_usage;
