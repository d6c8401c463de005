DROP TABLE audit_sample_call;
DROP TABLE audit_sample_part;
DROP TABLE audit_sample;
