-- Who may do what in wholefeed's database. Run once by an administrator, connected to the new database:
--
--   createdb --encoding UTF8 --template template0 wholefeed && psql -d wholefeed -f roles.sql
--   psql -d wholefeed -c '\password wholefeed_owner' -c '\password wholefeed' -c '\password wholefeed_backup'
--
-- The owner makes and changes the tables (`wholefeed migrate`, and the first `serve` of a new version if it is the
-- owner that runs). The user that serves reads and writes rows, and nothing else: it cannot make, change or drop a
-- table, empty one at a stroke, or give rights on. The one that backs up reads everything, and writes nothing.

CREATE ROLE wholefeed_owner LOGIN;
CREATE ROLE wholefeed LOGIN;
CREATE ROLE wholefeed_backup LOGIN REPLICATION;  -- REPLICATION is for pg_basebackup alone

DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO wholefeed_owner, wholefeed', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO wholefeed_backup', current_database());
END $$;

ALTER SCHEMA public OWNER TO wholefeed_owner;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO wholefeed;
GRANT pg_read_all_data TO wholefeed_backup;

-- Of tables that are there already, and of those that the owner makes later. The numbers of rows (identity columns)
-- need no right of their own.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO wholefeed;
ALTER DEFAULT PRIVILEGES FOR ROLE wholefeed_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO wholefeed;

-- A replica takes store.connections connections and two more. What is beyond that is a mistake.
ALTER ROLE wholefeed CONNECTION LIMIT 64;
