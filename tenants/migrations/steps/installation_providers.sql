CREATE TABLE installation_provider (
    id uuid NOT NULL,
    name varchar(40) NOT NULL,
    kind varchar(8) NOT NULL,
    settings jsonb NOT NULL,
    secret_box bytea,
    roles jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    disabled_at timestamptz,
    CONSTRAINT installation_provider_pkey PRIMARY KEY (id),
    CONSTRAINT installation_provider_name_uniq UNIQUE (name),
    CONSTRAINT installation_provider_kind_check CHECK (kind IN ('oidc', 'saml'))
);
REVOKE UPDATE, DELETE ON installation_provider FROM tooltrail_app;
GRANT UPDATE (name, settings, secret_box, roles, disabled_at)
    ON installation_provider TO tooltrail_app;

ALTER TABLE membership
    ADD COLUMN installation_provider_id uuid,
    DROP CONSTRAINT membership_provider_check,
    ADD CONSTRAINT membership_provider_check CHECK (
        identity_provider_id IS NULL AND installation_provider_id IS NULL
        OR NOT is_service AND (identity_provider_id IS NULL OR installation_provider_id IS NULL)
    ),
    DROP CONSTRAINT membership_glass_check,
    ADD CONSTRAINT membership_glass_check CHECK (
        NOT breaks_glass
        OR role = 'admin' AND identity_provider_id IS NULL AND installation_provider_id IS NULL
    );
