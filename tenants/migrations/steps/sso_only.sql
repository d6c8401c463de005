ALTER TABLE tenant ADD COLUMN sso_only boolean DEFAULT false NOT NULL;
GRANT UPDATE (sso_only) ON tenant TO tooltrail_app;

ALTER TABLE membership
    ADD COLUMN breaks_glass boolean DEFAULT false NOT NULL,
    ADD CONSTRAINT membership_glass_check
        CHECK (NOT breaks_glass OR role = 'admin' AND identity_provider_id IS NULL);
CREATE UNIQUE INDEX membership_glass_uniq ON membership (tenant_id) WHERE breaks_glass;
