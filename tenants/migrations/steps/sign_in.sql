ALTER TABLE tenant
    ADD COLUMN second_factor_roles varchar(8)[] DEFAULT '{}' NOT NULL,
    ADD COLUMN step_up boolean DEFAULT false NOT NULL,
    ADD COLUMN session_idle_minutes integer,
    ADD COLUMN session_max_hours integer,
    ADD CONSTRAINT tenant_session_check CHECK (session_idle_minutes > 0 AND session_max_hours > 0);
GRANT UPDATE (second_factor_roles, step_up, session_idle_minutes, session_max_hours)
    ON tenant TO tooltrail_app;

CREATE TABLE cache_entry (
    cache_key varchar(255) NOT NULL,
    value text NOT NULL,
    expires timestamptz NOT NULL,
    CONSTRAINT cache_entry_pkey PRIMARY KEY (cache_key)
);
CREATE INDEX cache_entry_expires ON cache_entry (expires);
