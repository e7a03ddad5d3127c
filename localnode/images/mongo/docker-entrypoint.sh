#!/bin/sh
# Makes the data folder where there is none, then runs MongoDB.
set -eu
umask 077
# Below the mount, which cannot be replaced.
data=/data/db/data

quoted() {
  printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"
}

if [ "$1" = mongod ]; then
  shift
  if [ -n "${MONGO_INITDB_ROOT_USERNAME:-}" ] && [ -n "${MONGO_INITDB_ROOT_PASSWORD:-}" ]; then
    set -- --auth "$@"
    if [ ! -d "$data" ]; then
      # Created beside it and moved when complete, so that an interrupted start begins again.
      rm -rf "$data.draft"
      mkdir "$data.draft"
      mongod --dbpath "$data.draft" --bind_ip 127.0.0.1 --port 27018 --fork --logpath /tmp/setup.log
      echo "db.createUser({ user: $(quoted "$MONGO_INITDB_ROOT_USERNAME"), pwd: $(quoted "$MONGO_INITDB_ROOT_PASSWORD"), roles: ['root'] })" > /tmp/setup.js
      mongo --quiet --port 27018 admin /tmp/setup.js
      rm /tmp/setup.js
      mongod --dbpath "$data.draft" --shutdown
      mv "$data.draft" "$data"
    fi
  fi
  mkdir -p "$data"
  set -- mongod --dbpath "$data" --bind_ip_all "$@"
fi
exec "$@"
