#!/bin/sh
# Makes sure the pinned Node and the packages are installed, then runs the command named in $1.
set -eu
cd "$(dirname "$0")/.."
stamp=node_modules/.moorage-lock
if ! cmp -s package-lock.json "$stamp" 2>/dev/null; then
  echo "installing npm packages ..." >&2
  npm ci --no-audit --no-fund --loglevel=error >&2
  cp package-lock.json "$stamp"
fi
PATH="$PWD/node_modules/.bin:$PATH"
# Every process that starts anew, such as a worker of the API, finds its sources compiled.
NODE_COMPILE_CACHE="${NODE_COMPILE_CACHE:-$PWD/node_modules/.cache/compiled}"
export PATH NODE_COMPILE_CACHE
command=$1
shift
case "$command" in
  up | down | status) exec node cli/main.ts "$command" "$@" ;;
  start) exec node api/alone.ts "$@" ;;
  apps) exec node cli/apps/main.ts "$@" ;;
  moorage) exec node cli/moorage/main.ts "$@" ;;
  submit | plan) exec node cli/moorage/main.ts "$command" "$@" ;;
  verify)
    # The local installation has an authority of its own.
    if [ -z "${NODE_EXTRA_CA_CERTS:-}" ] && [ -f .moorage/ca.crt ]; then export NODE_EXTRA_CA_CERTS="$PWD/.moorage/ca.crt"; fi
    exec node api/accounting/receipts/verify/main.ts "$@"
    ;;
  attack) exec node test/attack/main.ts "$@" ;;
  corpus) exec node test/corpus/main.ts "$@" ;;
  check | test) exec node test/main.ts "$command" "$@" ;;
  test:kind) exec node test/kind/main.ts "$@" ;;
  *) echo "unknown command: $command" >&2; exit 64 ;;
esac
