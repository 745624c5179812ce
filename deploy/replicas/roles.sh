#!/bin/sh
# Run by PostgreSQL's image when it makes its database: the roles, with the passwords of the secrets.
set -eu
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -f /roles.sql
for role in wholefeed_owner wholefeed wholefeed_backup; do
    psql -v ON_ERROR_STOP=1 -v role="$role" -v password="$(cat "/run/secrets/${role}_password")" \
        -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'SQL'
ALTER ROLE :"role" PASSWORD :'password';
SQL
done
