DROP TABLE alert_trial;
