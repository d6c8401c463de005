-- {{answer_sums}} --
-- How many answers, and their tokens.
count(*), sum(input_tokens), sum(cached_tokens), sum(written_tokens), sum(output_tokens)

-- {{price_cell}} --
-- What decides about the price of an answer, beside provider and model.
width_bucket(started_at, %(periods)s::timestamptz[]) AS period,
width_bucket(input_tokens - 1, %(tiers)s::bigint[]) AS tier

-- any_llm_usage --
-- Whether a range has an answer of a model. What an inner span reports again is none.
SELECT 1
FROM llm_usage
WHERE tenant_id = %(tenant_id)s
  AND NOT is_inner
  AND started_at >= %(start)s
  AND started_at < %(end)s
LIMIT 1

-- answers_over_time --
-- Answers and their tokens by slot and by what decides about their prices. Each slot is read by itself:
-- for a whole range, the planner expects as many groups as answers, and sorts them on disk.
SELECT slot.number - 1, chosen.*
FROM unnest(%(slot_starts)s::timestamptz[], %(slot_ends)s::timestamptz[])
    WITH ORDINALITY AS slot (start_at, end_at, number)
CROSS JOIN LATERAL (
    SELECT provider, model, {{price_cell}}, {{answer_sums}}
    FROM llm_usage
    WHERE tenant_id = %(tenant_id)s
      AND NOT is_inner
      AND started_at >= slot.start_at
      AND started_at < slot.end_at
    GROUP BY provider, model, period, tier
) AS chosen

-- answers_of --
-- The same of a trace or a conversation, in one slot.
SELECT 0, provider, model, {{price_cell}}, {{answer_sums}}
FROM llm_usage
WHERE tenant_id = %(tenant_id)s
  AND NOT is_inner
  AND (%(trace_id)s::text IS NULL OR trace_id = %(trace_id)s)
  AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s)
GROUP BY provider, model, period, tier

-- {{newest_answers}} --
-- The newest answers of a range, of all agents or of one.
SELECT provider, model, agent, agent_version, run_id, trace_id, input_tokens, cached_tokens,
       written_tokens, output_tokens, {{price_cell}}
FROM llm_usage
WHERE tenant_id = %(tenant_id)s
  AND NOT is_inner
  AND started_at >= %(start)s
  AND started_at < %(end)s
  AND (%(agent)s::text IS NULL OR agent = %(agent)s)
ORDER BY started_at DESC
LIMIT %(answer_limit)s

-- newest_answers_by_agent --
-- Such answers and their tokens by agent and by what decides about their prices.
SELECT agent, provider, model, period, tier, {{answer_sums}}
FROM ({{newest_answers}}) AS newest
GROUP BY agent, provider, model, period, tier

-- {{named_sums}} --
-- Answers, those with a price, what these cost, and the tokens of all.
count(*) AS answers, count(cost), coalesce(sum(cost), 0) AS amount, sum(input_tokens),
sum(cached_tokens), sum(written_tokens), sum(output_tokens)

-- newest_answers_by_name --
-- What such answers cost in all, and by agent and version, conversation and trace: the dearest of each.
WITH priced AS MATERIALIZED (
    SELECT u.agent, u.agent_version, u.run_id, u.trace_id, u.input_tokens, u.cached_tokens,
           u.written_tokens, u.output_tokens,
           CASE
               WHEN u.output_tokens > 0 AND rate.output IS NULL THEN NULL
               ELSE (
                   (u.input_tokens - u.cached_tokens - u.written_tokens) * rate.input
                   + u.cached_tokens * rate.cached
                   + u.written_tokens * rate.written
                   + u.output_tokens * coalesce(rate.output, 0)
               ) * 0.000001
           END AS cost
    FROM ({{newest_answers}}) AS u
    LEFT JOIN unnest(
        %(rate_providers)s::text[], %(rate_models)s::text[], %(rate_periods)s::integer[],
        %(rate_tiers)s::integer[], %(rates_input)s::numeric[], %(rates_cached)s::numeric[],
        %(rates_written)s::numeric[], %(rates_output)s::numeric[]
    ) AS rate (provider, model, period, tier, input, cached, written, output)
        ON rate.provider = u.provider
       AND rate.model = u.model
       AND rate.period = u.period
       AND rate.tier = u.tier
)
SELECT 'all', '', '', {{named_sums}}
FROM priced
UNION ALL (
    SELECT 'agent', agent, agent_version, {{named_sums}}
    FROM priced
    GROUP BY agent, agent_version
    ORDER BY amount DESC, answers DESC, agent, agent_version
    LIMIT %(row_limit)s
)
UNION ALL (
    SELECT 'run', run_id, '', {{named_sums}}
    FROM priced
    GROUP BY run_id
    ORDER BY amount DESC, answers DESC, run_id
    LIMIT %(row_limit)s
)
UNION ALL (
    SELECT 'trace', trace_id, '', {{named_sums}}
    FROM priced
    GROUP BY trace_id
    ORDER BY amount DESC, answers DESC, trace_id
    LIMIT %(row_limit)s
)
