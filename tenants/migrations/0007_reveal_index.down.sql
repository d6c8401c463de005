DROP INDEX action_tenant_reveal_idx;
