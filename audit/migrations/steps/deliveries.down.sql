DROP TABLE alert_delivery, alert_channel;
