-- Tools whose outputs the server judges where no guard has looked at them.
ALTER TABLE tool ADD COLUMN is_checked_on_arrival boolean NOT NULL DEFAULT false;
ALTER TABLE tool ALTER COLUMN is_checked_on_arrival DROP DEFAULT;

ALTER TABLE tool_change DROP CONSTRAINT tool_change_kind_check;
ALTER TABLE tool_change ADD CONSTRAINT tool_change_kind_check CHECK (kind IN (
    'created', 'described', 'draft_made', 'draft_saved', 'draft_discarded',
    'published', 'made_current', 'deprecated', 'retired', 'restored',
    'checks_on', 'checks_off', 'kept', 'refused'));
