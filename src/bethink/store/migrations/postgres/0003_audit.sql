-- The audit trail says who changed what, in order. It is no chain of hashes any more: whoever could change it behind the application's back could
-- have sealed it anew. Numbers, times and people still come from the database itself, and the role that serves cannot change a line.

GRANT CREATE ON SCHEMA bethink TO bethink_keeper;  -- only for as long as its function is replaced
SET LOCAL ROLE bethink_keeper;
CREATE OR REPLACE FUNCTION bethink.seal() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE bethink.tenants SET sealed = sealed + 1 WHERE id = new.tenant RETURNING sealed INTO new.number;
  new.at := clock_timestamp();
  new.person := bethink.person();
  RETURN new;
END $$;
RESET ROLE;
REVOKE CREATE ON SCHEMA bethink FROM bethink_keeper;
