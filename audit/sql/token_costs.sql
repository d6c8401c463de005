-- {{chosen_answers}} --
-- The newest answers of a range, of one trace, of one conversation or of one agent. What an inner span
-- reports again is none.
SELECT started_at, trace_id, provider, model, agent, agent_version, run_id, input_tokens,
       cached_tokens, written_tokens, output_tokens,
       width_bucket(started_at, %(periods)s::timestamptz[]) AS period,
       width_bucket(input_tokens - 1, %(tiers)s::bigint[]) AS tier
FROM llm_usage
WHERE {{answer_is_chosen}}
ORDER BY started_at DESC
LIMIT %(answer_limit)s

-- {{answer_is_chosen}} --
tenant_id = %(tenant_id)s
  AND NOT is_inner
  AND (%(first_day)s::date IS NULL OR started_on BETWEEN %(first_day)s AND %(last_day)s)
  AND (%(start)s::timestamptz IS NULL OR started_at >= %(start)s)
  AND (%(end)s::timestamptz IS NULL OR started_at < %(end)s)
  AND (%(trace_id)s::text IS NULL OR trace_id = %(trace_id)s)
  AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s)
  AND (%(agent)s::text IS NULL OR agent = %(agent)s)

-- any_llm_usage --
-- Whether there is such an answer.
SELECT 1 FROM llm_usage WHERE {{answer_is_chosen}} LIMIT 1

-- llm_usage_by_model --
-- Answers and their tokens by slot and by what decides about their prices.
SELECT width_bucket(started_at, %(bounds)s::timestamptz[]) - 1 AS slot, provider, model,
       width_bucket(started_at, %(periods)s::timestamptz[]) AS period,
       width_bucket(input_tokens - 1, %(tiers)s::bigint[]) AS tier,
       count(*), sum(input_tokens), sum(cached_tokens), sum(written_tokens), sum(output_tokens)
FROM llm_usage
WHERE {{answer_is_chosen}}
GROUP BY 1, 2, 3, 4, 5

-- newest_llm_usage_by_model --
-- The same of the newest answers, in one slot.
SELECT 0, provider, model, period, tier, count(*), sum(input_tokens), sum(cached_tokens),
       sum(written_tokens), sum(output_tokens)
FROM ({{chosen_answers}}) AS newest
GROUP BY provider, model, period, tier

-- llm_usage_by_name --
-- What such answers cost in all, and by agent and version, conversation and trace: the dearest of each.
-- The first column has a bit for each column that is not grouped by.
SELECT kind, agent, agent_version, run_id, trace_id, answers, priced, amount, input_tokens,
       cached_tokens, written_tokens, output_tokens
FROM (
    SELECT *, row_number() OVER (
               PARTITION BY kind ORDER BY amount DESC, answers DESC, agent, agent_version, run_id, trace_id
           ) AS place
    FROM (
        SELECT grouping(agent, run_id, trace_id) AS kind, agent, agent_version, run_id, trace_id,
               count(*) AS answers, count(cost) AS priced, coalesce(sum(cost), 0) AS amount,
               sum(input_tokens) AS input_tokens, sum(cached_tokens) AS cached_tokens,
               sum(written_tokens) AS written_tokens, sum(output_tokens) AS output_tokens
        FROM (
            SELECT u.*,
                   CASE
                       WHEN u.output_tokens > 0 AND rate.output IS NULL THEN NULL
                       ELSE (
                           (u.input_tokens - u.cached_tokens - u.written_tokens) * rate.input
                           + u.cached_tokens * rate.cached
                           + u.written_tokens * rate.written
                           + u.output_tokens * coalesce(rate.output, 0)
                       ) * 0.000001
                   END AS cost
            FROM ({{chosen_answers}}) AS u
            LEFT JOIN unnest(
                %(rate_providers)s::text[], %(rate_models)s::text[], %(rate_periods)s::integer[],
                %(rate_tiers)s::integer[], %(rates_input)s::numeric[], %(rates_cached)s::numeric[],
                %(rates_written)s::numeric[], %(rates_output)s::numeric[]
            ) AS rate (provider, model, period, tier, input, cached, written, output)
                ON rate.provider = u.provider
               AND rate.model = u.model
               AND rate.period = u.period
               AND rate.tier = u.tier
        ) AS priced
        GROUP BY GROUPING SETS ((), (agent, agent_version), (run_id), (trace_id))
    ) AS summed
) AS numbered
WHERE place <= %(row_limit)s
ORDER BY kind, place
