#!/bin/sh
# Starts `moorage` from any folder, also through the links that npm makes: bootstrap.sh has the pinned Node and the packages.
set -eu
program=$0
while [ -L "$program" ]; do
  target=$(readlink "$program")
  case $target in
    /*) program=$target ;;
    *) program=$(dirname "$program")/$target ;;
  esac
done
INIT_CWD=$PWD
export INIT_CWD
exec sh "$(dirname "$program")/../bootstrap.sh" moorage "$@"
