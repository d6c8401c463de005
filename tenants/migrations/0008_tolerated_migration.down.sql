DROP TABLE tolerated_migration;
