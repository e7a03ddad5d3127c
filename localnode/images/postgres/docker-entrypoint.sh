#!/bin/sh
# Makes the data folder where there is none, then runs PostgreSQL.
set -eu
umask 077
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}

if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -z "${POSTGRES_PASSWORD:-}" ]; then
    echo 'set POSTGRES_PASSWORD: it is the password of the user that is made with the data folder' >&2
    exit 1
  fi
  # Created beside it and moved when complete, so that an interrupted start begins again. The mount point itself cannot be replaced.
  draft=$PGDATA
  if [ ! -d "$PGDATA" ]; then
    draft=$PGDATA.draft
    rm -rf "$draft"
  fi
  printf '%s\n' "$POSTGRES_PASSWORD" > /tmp/password
  initdb --pgdata="$draft" --username="$user" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
  rm /tmp/password
  echo "host all all all ${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >> "$draft/pg_hba.conf"
  echo "listen_addresses = '*'" >> "$draft/postgresql.conf"
  if [ "$database" != postgres ]; then
    echo "create database \"$database\"" | postgres --single -D "$draft" postgres > /dev/null
  fi
  [ "$draft" = "$PGDATA" ] || mv "$draft" "$PGDATA"
fi
exec "$@"
