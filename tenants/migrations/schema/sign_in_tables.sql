-- Tables that django-allauth's migrations make, with their notes and grants. They have no tenant_id
-- and hence no row-level security: a second factor and a session belong to an account.

-- account_emailaddress: unused. Nobody signs in with an address.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
COMMENT ON TABLE account_emailaddress IS 'django-allauth';
REVOKE INSERT, UPDATE, DELETE ON account_emailaddress FROM tooltrail_app;

-- account_emailconfirmation: unused.
--
-- Retention: kept.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
COMMENT ON TABLE account_emailconfirmation IS 'django-allauth';
REVOKE INSERT, UPDATE, DELETE ON account_emailconfirmation FROM tooltrail_app;

-- mfa_authenticator: second factors of accounts: the secret of an authenticator app and the seed of
-- recovery codes, both encrypted (config/boxes.py), and the public keys of passkeys.
--
-- Retention: kept until its owner removes it.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
COMMENT ON TABLE mfa_authenticator IS 'django-allauth';
-- Made anew: a restore would reword the IN of the condition.
DROP INDEX unique_authenticator_type;
CREATE UNIQUE INDEX unique_authenticator_type ON mfa_authenticator (user_id, type)
    WHERE type = 'totp' OR type = 'recovery_codes';

-- usersessions_usersession: the sessions of an account, with address and browser.
--
-- Retention: rows are deleted when their owner signs in after the session has ended.
-- Erasure: no effect.
-- Tenant deletion: rows are kept.
-- Citus: local to the coordinator.
COMMENT ON TABLE usersessions_usersession IS 'django-allauth';
