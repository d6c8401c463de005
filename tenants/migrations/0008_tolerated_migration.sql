-- Migrations beside which processes that do not know them may go on (config/postgresql/schema.py).
CREATE TABLE tolerated_migration (
    app text NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (app, name)
);
REVOKE INSERT, UPDATE, DELETE ON tolerated_migration FROM tooltrail_app;
