#!/bin/sh
# A container runtime that removes CAP_SYS_RESOURCE from what is asked for, and then hands over to the real one.
strip() {
  [ -f "$1" ] || return 0
  jq "$2 |= (. // {} | map_values(map(select(. != \"CAP_SYS_RESOURCE\"))))" "$1" > "$1.new" && mv "$1.new" "$1"
}
previous=
for argument in "$@"; do
  case "$previous" in
    --bundle) strip "$argument/config.json" .process.capabilities ;;
    --process) strip "$argument" .capabilities ;;
  esac
  previous=$argument
done
PATH=$(printf %s "$PATH" | sed "s#^$(dirname "$0"):##")
self=$0
for folder in $(printf %s "$PATH" | tr : ' '); do
  [ -x "$folder/runc" ] && [ "$folder/runc" != "$self" ] && exec "$folder/runc" "$@"
done
echo "there is no runc on the PATH" >&2
exit 127
