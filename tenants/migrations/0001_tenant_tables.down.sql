DROP TABLE action, api_key, membership;
