#!/bin/sh
# Stands between buildkitd and runc. It takes CAP_NET_RAW from each build step: steps share the network of the pod, through
# which the daemon sends the registry's credentials (in the clear where the registry has no TLS), and with it, a step could
# listen. And it mounts uv where the steps of a planned Python app look for it.
set -eu

bundle=.
previous=
for argument in "$@"; do
  case "$previous" in --bundle | -b) bundle=$argument ;; esac
  case "$argument" in --bundle=*) bundle=${argument#--bundle=} ;; esac
  previous=$argument
done

# JSON escapes the quotes in an author's text, so it cannot match the key.
if [ -f "$bundle/config.json" ]; then
  sed -i -e ':again' \
    -e 's/\("capabilities":{[^}]*\),"CAP_NET_RAW"/\1/; t again' \
    -e 's/\("capabilities":{[^}]*\)\["CAP_NET_RAW",/\1[/; t again' \
    -e 's/\("capabilities":{[^}]*\)\["CAP_NET_RAW"\]/\1[]/; t again' "$bundle/config.json"
  if grep -Eq '"capabilities":[[:space:]]*[{][^}]*CAP_NET_RAW' "$bundle/config.json"; then
    echo "step-runtime: CAP_NET_RAW could not be taken from this step" >&2
    exit 1
  fi
  # An installation by pip takes two seconds of each first build, and as long for its layer in the cache.
  uv=$(cd "$(dirname "$0")/../../.." && pwd)/uv
  if [ -x "$uv/uv" ] && grep -q '/opt/moorage/uv/' "$bundle/config.json"; then
    sed -i 's#"mounts":\[#&{"destination":"/opt/moorage/uv/bin","type":"bind","source":"'"$uv"'","options":["bind","ro","nosuid","nodev"]},#' "$bundle/config.json"
  fi
fi

if command -v buildkit-runc > /dev/null; then exec buildkit-runc "$@"; fi
exec runc "$@"
