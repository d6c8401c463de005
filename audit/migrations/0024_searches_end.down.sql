REVOKE SELECT, DELETE ON payload_search_hit FROM tooltrail_keeper;
