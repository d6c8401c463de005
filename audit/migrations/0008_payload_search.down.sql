DROP TABLE payload_search_hit, payload_search;
