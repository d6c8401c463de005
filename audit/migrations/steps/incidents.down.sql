DROP TABLE incident;
