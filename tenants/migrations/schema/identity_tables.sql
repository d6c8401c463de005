-- Tables that the migrations of django-allauth's part for identity providers make, with their notes
-- and grants. They have no tenant_id and hence no row-level security: an identity belongs to an
-- account.

-- socialaccount_socialaccount: which account somebody has who signs in with a provider: the
-- provider, with its tenant, and the provider's name for the person. Nothing else of the person.
--
-- Retention: kept until its owner removes it.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
COMMENT ON TABLE socialaccount_socialaccount IS 'django-allauth';

-- socialaccount_socialapp: unused. Providers are in identity_provider.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
COMMENT ON TABLE socialaccount_socialapp IS 'django-allauth';
REVOKE INSERT, UPDATE, DELETE ON socialaccount_socialapp FROM tooltrail_app;

-- socialaccount_socialtoken: always empty. Tokens of providers are not kept; django-allauth deletes
-- those of an identity that goes.
--
-- Retention: kept until its identity goes.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
COMMENT ON TABLE socialaccount_socialtoken IS 'django-allauth';
REVOKE INSERT, UPDATE ON socialaccount_socialtoken FROM tooltrail_app;
