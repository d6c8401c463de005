DROP TABLE alert;
DROP TABLE alert_rule;
