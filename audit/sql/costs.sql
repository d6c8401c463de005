-- {{price}} --
-- The prices of the lists that hold in a range (audit/queries/price_lists.py). Lists count from 1.
unnest(
    %(price_tools)s::text[], %(price_lists)s::integer[], %(per_call)s::numeric[],
    %(per_unit)s::numeric[], %(unit_path_ids)s::uuid[]
) AS price (tool_name, list, per_call, per_unit, unit_path_id)

-- {{cost}} --
-- What a completed call costs by its price and its units; NULL if it has no price.
coalesce(price.per_call, price.per_unit * u.units)

-- {{cost_of_call}} --
-- What a completed `call` costs; NULL if it has no price.
(
          SELECT {{cost}}
          FROM {{price}}
          LEFT JOIN call_units u
              ON u.tenant_id = %(tenant_id)s
             AND u.started_on = call.started_on
             AND u.unit_path_id = price.unit_path_id
             AND u.invocation_id = call.invocation_id
          WHERE price.tool_name = call.tool_name
            AND price.list = width_bucket(call.started_at, %(list_starts)s::timestamptz[])
      )

-- price_lists_in_use --
-- The price lists that figures use, in order. Planned once, as every page with costs asks for them.
SELECT holds_from, currency, in_use::text
FROM price_list
WHERE tenant_id = %(tenant_id)s AND in_use IS NOT NULL
ORDER BY holds_from

-- costs_over_time --
-- Completed calls, of all tools or of one, those with a price, and what these cost: by slot, and by tool and version in all
-- slots but the first, which is the previous range. Calls are counted in the cells of
-- audit/queries/hour_cells.py; a list begins at midnight UTC, so no cell has two. Units are read by
-- call.
WITH called AS (
    SELECT slot, list, tool_name, tool_version, sum(calls) AS calls
    FROM (
        SELECT {{hour_slot}} AS slot,
               width_bucket(hour_at, %(list_starts)s::timestamptz[]) AS list,
               tool_name, tool_version, completed_count AS calls
        FROM rollup
        WHERE {{whole_hours}} AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
        UNION ALL
        SELECT {{quarter_slot}}, width_bucket(quarter_at, %(list_starts)s::timestamptz[]),
               tool_name, tool_version, completed_count
        FROM quarter_rollup
        WHERE {{cut_quarters}} AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
        UNION ALL
        SELECT moved.slot, width_bucket(i.started_at, %(list_starts)s::timestamptz[]),
               i.tool_name, i.tool_version, moved.sign
        FROM {{cell_pieces}}
        CROSS JOIN LATERAL (
            SELECT started_at, tool_name, tool_version
            FROM invocation
            WHERE {{piece_calls}}
              AND state IN ('ok', 'failed')
              AND (%(tool)s::text IS NULL OR tool_name = %(tool)s)
            LIMIT ALL
        ) AS i
        CROSS JOIN LATERAL (
            VALUES (piece.slot, 1), (piece.taken_from, -1)
        ) AS moved (slot, sign)
        WHERE moved.slot IS NOT NULL
    ) AS cell
    GROUP BY slot, list, tool_name, tool_version
), measured AS (
    SELECT width_bucket(started_at, %(bounds)s::timestamptz[]) - 1 AS slot,
           width_bucket(started_at, %(list_starts)s::timestamptz[]) AS list,
           unit_path_id, tool_version, count(*) AS calls, sum(units) AS units
    FROM call_units
    WHERE tenant_id = %(tenant_id)s
      AND started_on BETWEEN %(first_day)s AND %(last_day)s
      AND started_at >= %(start)s
      AND started_at < %(end)s
      AND unit_path_id = ANY(%(unit_path_ids)s::uuid[])
    GROUP BY 1, 2, 3, 4
), priced AS (
    SELECT called.slot, called.slot > 0 AS is_current, called.tool_name, called.tool_version,
           called.calls,
           CASE WHEN price.per_call IS NOT NULL THEN called.calls
                ELSE coalesce(measured.calls, 0) END AS priced_calls,
           coalesce(price.per_call * called.calls, price.per_unit * measured.units) AS amount
    FROM called
    LEFT JOIN {{price}}
        ON price.tool_name = called.tool_name AND price.list = called.list
    LEFT JOIN measured
        ON measured.slot = called.slot
       AND measured.list = called.list
       AND measured.unit_path_id = price.unit_path_id
       AND measured.tool_version = called.tool_version
)
SELECT slot, tool_name, tool_version, sum(calls)::bigint, sum(priced_calls)::bigint,
       coalesce(sum(amount), 0)
FROM priced
GROUP BY GROUPING SETS ((slot), (is_current, tool_name, tool_version))
HAVING GROUPING(slot) = 0 OR is_current

-- {{prices_of_calls}} --
-- Behind calls `i`: the price of each and its units, where it has any.
LEFT JOIN {{price}}
    ON price.tool_name = i.tool_name
   AND price.list = width_bucket(i.started_at, %(list_starts)s::timestamptz[])
LEFT JOIN call_units u
    ON u.tenant_id = %(tenant_id)s
   AND u.started_on = i.started_on
   AND u.unit_path_id = price.unit_path_id
   AND u.invocation_id = i.invocation_id

-- {{newest_priced_calls}} --
-- The newest completed calls of a range, of one trace or of one conversation, each with its cost; NULL
-- if it has no price.
SELECT coalesce(i.agent, '') AS agent, i.agent_version, i.model, i.run_id, i.trace_id,
       {{cost}} AS cost
FROM (
    SELECT started_on, invocation_id, started_at, tool_name, agent, agent_version, model, run_id,
           trace_id
    FROM invocation
    WHERE {{among_calls}}
      AND state IN ('ok', 'failed')
    ORDER BY started_at DESC
    LIMIT %(call_limit)s
) AS i
{{prices_of_calls}}

-- {{priced_sums}} --
-- Calls, those with a price, and what these cost.
count(*) AS calls, count(cost), coalesce(sum(cost), 0) AS amount

-- costs_by_agent --
-- What such calls cost in all, and by agent.
SELECT GROUPING(agent) = 1, agent, {{priced_sums}}
FROM ({{newest_priced_calls}}) AS priced
GROUP BY GROUPING SETS ((), (agent))

-- costs_by_dimension --
-- What such calls cost in all, and by agent and version, model, conversation and trace: the dearest of
-- each.
WITH priced AS MATERIALIZED ({{newest_priced_calls}})
SELECT 'all', '', '', {{priced_sums}}
FROM priced
UNION ALL (
    SELECT 'agent', agent, agent_version, {{priced_sums}}
    FROM priced
    GROUP BY agent, agent_version
    ORDER BY amount DESC, calls DESC, agent, agent_version
    LIMIT %(row_limit)s
)
UNION ALL (
    SELECT 'model', model, '', {{priced_sums}}
    FROM priced
    GROUP BY model
    ORDER BY amount DESC, calls DESC, model
    LIMIT %(row_limit)s
)
UNION ALL (
    SELECT 'run', run_id, '', {{priced_sums}}
    FROM priced
    GROUP BY run_id
    ORDER BY amount DESC, calls DESC, run_id
    LIMIT %(row_limit)s
)
UNION ALL (
    SELECT 'trace', trace_id, '', {{priced_sums}}
    FROM priced
    GROUP BY trace_id
    ORDER BY amount DESC, calls DESC, trace_id
    LIMIT %(row_limit)s
)

-- costs_of_calls --
-- What these completed calls cost; those without a price are left out.
SELECT priced.*
FROM (
    SELECT i.started_on, i.invocation_id, {{cost}} AS cost
    FROM unnest(
        %(days)s::date[], %(invocation_ids)s::uuid[], %(tools)s::text[], %(starts)s::timestamptz[]
    ) AS i (started_on, invocation_id, tool_name, started_at)
    {{prices_of_calls}}
) AS priced
WHERE cost IS NOT NULL

-- costs_summed_before --
-- What the calls of a query cost: the completed ones that match, among the calls before a cursor that
-- calls_before scans. All others are one row.
SELECT counts, CASE WHEN counts THEN tool_name END AS tool_name,
       CASE WHEN counts THEN tool_version END AS tool_version,
       CASE WHEN counts THEN agent END AS agent,
       CASE WHEN counts THEN agent_version END AS agent_version,
       CASE WHEN counts THEN model END AS model, CASE WHEN counts THEN run_id END AS run_id,
       CASE WHEN counts THEN trace_id END AS trace_id, {{priced_sums}}, {{last_scanned}}
FROM (
    SELECT walked.*, {{matched_and_ran}} AND state IN ('ok', 'failed') AS counts,
           {{cost}} AS cost
    FROM {{walked_before}}
    LEFT JOIN {{price}}
        ON price.tool_name = walked.tool_name
       AND price.list = width_bucket(walked.started_at, %(list_starts)s::timestamptz[])
    LEFT JOIN call_units u
        ON u.tenant_id = %(tenant_id)s
       AND u.started_on = walked.started_on
       AND u.unit_path_id = price.unit_path_id
       AND u.invocation_id = walked.invocation_id
) AS priced
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8

-- unit_paths_behind --
-- Whether the log has events that were not read for a path yet.
SELECT 1
FROM unit_path p
JOIN ledger_head h ON h.tenant_id = p.tenant_id
WHERE p.tenant_id = %(tenant_id)s AND p.next_index < h.size
LIMIT 1

-- units_counted --
-- How many events were read, and how many are to be read, for paths that figures do not use yet.
SELECT coalesce(sum(next_index - from_index), 0)::bigint,
       coalesce(sum(goal_index - from_index), 0)::bigint
FROM unit_path
WHERE tenant_id = %(tenant_id)s AND next_index < goal_index

-- first_index_since --
-- The ledger index of the first event that arrived at an instant or later.
SELECT first_index
FROM batch
WHERE tenant_id = %(tenant_id)s AND received_at >= %(since)s
ORDER BY first_index
LIMIT 1

-- batches_with_units --
-- The next batches of the log whose end events may have units.
SELECT batch_id, received_at, first_index, event_count, payload, is_own
FROM batch
WHERE tenant_id = %(tenant_id)s
  AND first_index >= %(from_index)s
  AND first_index < %(to_index)s
ORDER BY first_index
LIMIT %(batch_limit)s

-- calls_ended_by --
-- The completed calls of which these events are the ends that count: a fuller account may have
-- replaced an event. A call's row may be on a day beside the event's.
SELECT u.batch_id, u.position, i.started_on, i.invocation_id, i.started_at, i.tool_name,
       i.tool_version
FROM unnest(
    %(days)s::date[], %(invocation_ids)s::uuid[], %(batch_ids)s::uuid[], %(positions)s::integer[]
) AS u (day, invocation_id, batch_id, position)
JOIN invocation i
  ON i.tenant_id = %(tenant_id)s
 AND i.started_on = ANY(%(near_days)s::date[])
 AND i.invocation_id = u.invocation_id
 AND i.end_batch_id = u.batch_id
 AND i.end_pos = u.position
WHERE i.state IN ('ok', 'failed')

-- upsert_call_units --
-- What these calls took.
INSERT INTO call_units AS c (
    tenant_id, started_on, unit_path_id, invocation_id, started_at, tool_version, units
)
SELECT %(tenant_id)s, u.*
FROM unnest(
    %(days)s::date[], %(unit_path_ids)s::uuid[], %(invocation_ids)s::uuid[],
    %(started_at)s::timestamptz[], %(tool_versions)s::text[], %(units)s::numeric[]
) AS u
ON CONFLICT (tenant_id, started_on, unit_path_id, invocation_id) DO UPDATE SET
    started_at = excluded.started_at, tool_version = excluded.tool_version, units = excluded.units

-- forget_call_units --
-- Calls whose fuller account has no units.
DELETE FROM call_units AS c
USING unnest(%(days)s::date[], %(unit_path_ids)s::uuid[], %(invocation_ids)s::uuid[])
    AS u (day, unit_path_id, invocation_id)
WHERE c.tenant_id = %(tenant_id)s
  AND c.started_on = u.day
  AND c.unit_path_id = u.unit_path_id
  AND c.invocation_id = u.invocation_id

-- forget_units_of_parts --
-- Calls that became a part of another one.
DELETE FROM call_units AS c
USING unnest(%(days)s::date[], %(invocation_ids)s::uuid[]) AS u (day, invocation_id)
WHERE c.tenant_id = %(tenant_id)s
  AND c.started_on = u.day
  AND c.invocation_id = u.invocation_id
  AND NOT EXISTS (
      SELECT FROM invocation i
      WHERE i.tenant_id = %(tenant_id)s
        AND i.started_on = u.day
        AND i.invocation_id = u.invocation_id
  )

-- forget_units_of_path --
-- Some of what was counted for a path that no list names any more. Returns how many rows.
WITH gone AS (
    DELETE FROM call_units AS c
    WHERE c.tenant_id = %(tenant_id)s
      AND c.ctid = ANY(ARRAY(
          SELECT u.ctid FROM call_units u
          WHERE u.tenant_id = %(tenant_id)s AND u.unit_path_id = %(path_id)s
          LIMIT %(row_limit)s
      ))
    RETURNING 1
)
SELECT count(*) FROM gone
