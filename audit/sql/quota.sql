-- settle_quota --
-- Fill a key's bucket for the time since it was last settled, take events from it, and return what
-- is left. The clocks of hosts differ: time counts only as far as the clock that is ahead.
INSERT INTO key_quota AS kept (tenant_id, key_id, events_left, settled_at)
VALUES (%(tenant_id)s, %(key_id)s, %(full)s::float8 - %(taken)s, %(now)s)
ON CONFLICT (tenant_id, key_id) DO UPDATE SET
    events_left = least(
        %(full)s::float8,
        kept.events_left + %(per_second)s
            * greatest(0, extract(epoch FROM excluded.settled_at - kept.settled_at)::float8)
    ) - %(taken)s,
    settled_at = greatest(kept.settled_at, excluded.settled_at)
RETURNING events_left
