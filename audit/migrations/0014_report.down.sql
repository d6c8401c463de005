DROP TABLE report_schedule;
DROP TABLE report;
