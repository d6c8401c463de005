ALTER TABLE tenant DROP COLUMN sso_only;
ALTER TABLE membership DROP COLUMN breaks_glass;
