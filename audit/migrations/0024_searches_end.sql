-- What searches in payloads found in a call goes with the call's erasure, which is the keeper's.

GRANT SELECT, DELETE ON payload_search_hit TO tooltrail_keeper;
