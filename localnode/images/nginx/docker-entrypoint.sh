#!/bin/sh
# Fills in the templates of /etc/nginx/templates and runs the scripts of /docker-entrypoint.d, then starts nginx.
set -e
for template in /etc/nginx/templates/*.template; do
  [ -e "$template" ] || continue
  names=$(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/${\1}/p' | tr '\n' ' ')
  envsubst "$names" < "$template" > "/etc/nginx/conf.d/$(basename "$template" .template)"
done
for script in /docker-entrypoint.d/*.sh; do
  [ -x "$script" ] && "$script"
done
exec "$@"
