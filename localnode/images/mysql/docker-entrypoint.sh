#!/bin/sh
# Makes the data folder where there is none, then runs MySQL.
set -eu
umask 077
# Below the mount, which is not empty on every file system and cannot be replaced.
data=/var/lib/mysql/data

quoted() {
  printf "'%s'" "$(printf '%s' "$1" | sed "s/[\\\\']/\\\\&/g")"
}

if [ "$1" = mysqld ]; then
  shift
  if [ ! -d "$data" ]; then
    if [ -z "${MYSQL_ROOT_PASSWORD:-}" ] && [ -n "${MYSQL_RANDOM_ROOT_PASSWORD:-}" ]; then
      MYSQL_ROOT_PASSWORD=$(head -c 24 /dev/urandom | base64)
    fi
    if [ -z "${MYSQL_ROOT_PASSWORD:-}${MYSQL_ALLOW_EMPTY_PASSWORD:-}" ]; then
      echo 'set MYSQL_ROOT_PASSWORD, MYSQL_RANDOM_ROOT_PASSWORD or MYSQL_ALLOW_EMPTY_PASSWORD: the user root is made with the data folder' >&2
      exit 1
    fi
    # Created beside it and moved when complete, so that an interrupted start begins again.
    rm -rf "$data.draft"
    {
      echo "ALTER USER 'root'@'localhost' IDENTIFIED BY $(quoted "${MYSQL_ROOT_PASSWORD:-}");"
      echo "CREATE USER 'root'@'%' IDENTIFIED BY $(quoted "${MYSQL_ROOT_PASSWORD:-}");"
      echo "GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;"
      if [ -n "${MYSQL_DATABASE:-}" ]; then
        database=$(printf '%s' "$MYSQL_DATABASE" | sed 's/`/``/g')
        echo "CREATE DATABASE IF NOT EXISTS \`$database\`;"
      fi
      if [ -n "${MYSQL_USER:-}" ]; then
        echo "CREATE USER $(quoted "$MYSQL_USER")@'%' IDENTIFIED BY $(quoted "${MYSQL_PASSWORD:-}");"
        [ -z "${database:-}" ] || echo "GRANT ALL ON \`$database\`.* TO $(quoted "$MYSQL_USER")@'%';"
      fi
    } > /tmp/setup.sql
    mysqld --no-defaults --initialize-insecure --datadir="$data.draft" --init-file=/tmp/setup.sql
    rm /tmp/setup.sql
    mv "$data.draft" "$data"
  fi
  # It can ask no resolver for the names of its clients, and would wait for one at every connection.
  set -- mysqld --no-defaults --datadir="$data" --bind-address=0.0.0.0 --mysqlx=OFF --secure-file-priv=NULL --skip-name-resolve "$@"
fi
exec "$@"
