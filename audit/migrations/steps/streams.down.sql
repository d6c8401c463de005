DROP TABLE stream;
