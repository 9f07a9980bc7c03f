-- A token belongs to a person. A role that is bound to a person sees, creates and revokes the tokens of that person alone; an administrator
-- those of the whole tenant. A row never changes its tenant, its owner or its person: no role that serves may update these columns.

-- A bound role may be marked as an administrator of its tenant. A role that is not bound acts for everybody, and is one.
ALTER TABLE bethink.logins ADD COLUMN admin boolean NOT NULL DEFAULT false;
CREATE FUNCTION bethink.administers() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
  RETURN NOT EXISTS (SELECT 1 FROM bethink.logins l WHERE l.role = session_user AND NOT l.admin);

-- Binds a role that logs in to one person of one tenant, for the owner of the database; to nobody, with null.
DROP FUNCTION bethink.bind(name, text, text);
CREATE FUNCTION bethink.bind(login name, wanted text, person text, admin boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM bethink.logins l WHERE l.role = login;
  IF wanted IS NOT NULL THEN
    INSERT INTO bethink.logins (role, tenant, person, admin) VALUES (login, bethink.enter(wanted), person, admin);
  END IF;
END $$;
REVOKE ALL ON FUNCTION bethink.bind(name, text, text, boolean) FROM PUBLIC;
GRANT CREATE ON SCHEMA bethink TO bethink_keeper;  -- only for as long as its functions change
ALTER FUNCTION bethink.bind(name, text, text, boolean) OWNER TO bethink_keeper;
DO $$
DECLARE owner CONSTANT text := current_user;
BEGIN
  SET LOCAL ROLE bethink_keeper;
  EXECUTE format('GRANT EXECUTE ON FUNCTION bethink.bind(name, text, text, boolean) TO %I', owner);
  RESET ROLE;
END $$;

-- The actor of a line of the audit trail is the person for whom the transaction acts, or a program on their behalf.
SET LOCAL ROLE bethink_keeper;
CREATE OR REPLACE FUNCTION bethink.seal() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE bethink.tenants SET sealed = sealed + 1 WHERE id = new.tenant RETURNING sealed INTO new.number;
  new.at := clock_timestamp();
  new.person := bethink.person();
  IF new.person <> '' AND new.actor <> new.person THEN
    new.actor := split_part(new.actor, ' for ', 1) || ' for ' || new.person;
  END IF;
  RETURN new;
END $$;
RESET ROLE;
REVOKE CREATE ON SCHEMA bethink FROM bethink_keeper;

DO $$
DECLARE
  named name;
  columns text;
  theirs CONSTANT text := 'tenant = (SELECT bethink.tenant()) AND (SELECT bethink.allowed())'
    ' AND (person = (SELECT bethink.person()) OR (SELECT bethink.administers()))';
BEGIN
  FOR named IN SELECT relname FROM pg_class WHERE relnamespace = 'bethink'::regnamespace AND relkind = 'r'
                 AND relname NOT IN ('migrations', 'tenants', 'logins', 'history', 'audit') LOOP
    SELECT string_agg(quote_ident(attname), ', ') INTO columns FROM pg_attribute
      WHERE attrelid = format('bethink.%I', named)::regclass AND attnum > 0 AND NOT attisdropped
        AND CASE named
          WHEN 'scopes' THEN attname IN ('name', 'path', 'memories', 'words')
          WHEN 'tokens' THEN attname = 'revoked'
          ELSE attname <> 'tenant' END;
    EXECUTE format('REVOKE UPDATE ON bethink.%I FROM bethink_app', named);
    EXECUTE format('GRANT UPDATE (%s) ON bethink.%I TO bethink_app', columns, named);
  END LOOP;
  -- A token is created and revoked, and nothing else happens to it.
  REVOKE DELETE ON bethink.tokens FROM bethink_app;
  DROP POLICY own ON bethink.tokens;
  EXECUTE format('CREATE POLICY own ON bethink.tokens FOR SELECT TO bethink_app USING (%s)', theirs);
  EXECUTE format('CREATE POLICY create_own ON bethink.tokens FOR INSERT TO bethink_app WITH CHECK (%s)', theirs);
  EXECUTE format('CREATE POLICY revoke_own ON bethink.tokens FOR UPDATE TO bethink_app USING (%1$s AND revoked IS NULL) WITH CHECK (%1$s)', theirs);
END $$;
