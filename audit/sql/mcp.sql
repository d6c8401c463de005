-- count_mcp_use --
-- Count a use of a tool in its minute. The digest is chained: it is of the digest before and of
-- this use, in hexadecimal. Citus takes only immutable functions here, so not convert_to.
INSERT INTO mcp_use AS kept (tenant_id, key_id, tool, minute, use_count, digest, clients)
VALUES (%(tenant_id)s, %(key_id)s, %(tool)s, %(minute)s, 1, %(digest)s, %(clients)s::text[])
ON CONFLICT (tenant_id, key_id, tool, minute) DO UPDATE SET
    use_count = kept.use_count + 1,
    digest = encode(sha256(decode(kept.digest || excluded.digest, 'escape')), 'hex'),
    clients = CASE
        WHEN excluded.clients[1] = ANY (kept.clients) OR cardinality(kept.clients) >= %(clients_max)s
            THEN kept.clients
        ELSE kept.clients || excluded.clients
    END

-- take_mcp_uses --
-- Take the counts of minutes that are over: they are recorded in the same transaction.
DELETE FROM mcp_use WHERE tenant_id = %(tenant_id)s AND minute < %(before)s
RETURNING key_id, tool, minute, use_count, digest, clients
