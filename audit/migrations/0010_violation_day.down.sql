DROP TABLE violation_day;
