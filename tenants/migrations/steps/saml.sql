ALTER TABLE identity_provider
    DROP CONSTRAINT identity_provider_kind_check,
    ADD CONSTRAINT identity_provider_kind_check CHECK (kind IN ('oidc', 'saml'));
