REVOKE UPDATE (end_user) ON invocation FROM tooltrail_keeper;
REVOKE UPDATE (requested_by) ON decision FROM tooltrail_keeper;
REVOKE UPDATE (context) ON otlp_span FROM tooltrail_keeper;
