DROP TABLE maintenance_window;
