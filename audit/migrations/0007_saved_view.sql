-- Queries of the list of calls that a member keeps under a name: each user's own, in each tenant.

CREATE TABLE saved_view (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id bigint NOT NULL,
    name text NOT NULL,
    query text NOT NULL,                 -- as it is written, see audit/queries/call_query.py
    created_at timestamptz NOT NULL,
    CONSTRAINT saved_view_pkey PRIMARY KEY (tenant_id, id),
    CONSTRAINT saved_view_tenant_user_name_uniq UNIQUE (tenant_id, user_id, name),
    CONSTRAINT saved_view_tenant_fk FOREIGN KEY (tenant_id) REFERENCES tenant (id),
    CONSTRAINT saved_view_user_fk FOREIGN KEY (user_id) REFERENCES app_user (id) ON DELETE CASCADE
);

ALTER TABLE saved_view ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON saved_view
    USING (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid)
    WITH CHECK (tenant_id = NULLIF(current_setting('tooltrail.tenant_id', true), '')::uuid);
