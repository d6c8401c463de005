-- What was recorded of the switch cannot be told without its words, and says nothing without it.
DELETE FROM tool_change WHERE kind IN ('checks_on', 'checks_off');
ALTER TABLE tool_change DROP CONSTRAINT tool_change_kind_check;
ALTER TABLE tool_change ADD CONSTRAINT tool_change_kind_check CHECK (kind IN (
    'created', 'described', 'draft_made', 'draft_saved', 'draft_discarded',
    'published', 'made_current', 'deprecated', 'retired', 'restored', 'kept', 'refused'));
ALTER TABLE tool DROP COLUMN is_checked_on_arrival;
