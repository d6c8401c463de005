-- An erasure takes away whom a call was made for, too.
GRANT UPDATE (end_user) ON invocation TO tooltrail_keeper;
GRANT UPDATE (requested_by) ON decision TO tooltrail_keeper;
GRANT UPDATE (context) ON otlp_span TO tooltrail_keeper;
