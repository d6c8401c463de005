ALTER TABLE tenant
    DROP COLUMN second_factor_roles,
    DROP COLUMN step_up,
    DROP COLUMN session_idle_minutes,
    DROP COLUMN session_max_hours;
DROP TABLE cache_entry;
