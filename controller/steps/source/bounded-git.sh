#!/bin/sh
# git with bounded memory: it holds all references that a server sends before it prints one, and a server may send them without end.
ulimit -v 196608
exec git "$@"
