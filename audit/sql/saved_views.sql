-- offered_views --
-- The views of a page that a user is offered: own and shared ones, by name. '': of all pages.
SELECT id, user_id, name, query, page, is_shared, created_at
FROM saved_view
WHERE tenant_id = %(tenant_id)s
  AND (user_id = %(user_id)s OR is_shared)
  AND %(page)s IN ('', page)
ORDER BY name, id

-- page_choice --
-- What a user chose for a page; no row for nothing.
SELECT columns, default_view
FROM page_choice
WHERE tenant_id = %(tenant_id)s
  AND user_id = %(user_id)s
  AND page = %(page)s
