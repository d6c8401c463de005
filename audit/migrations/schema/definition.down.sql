DROP TABLE definition_change;
DROP TABLE served_definition;
DROP TABLE definition_server;
DROP TABLE definition;
