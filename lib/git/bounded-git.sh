#!/bin/sh
# git within limits of memory and of the files it writes, in a process group that ends together with this script.
trap 'kill -KILL "-$!"' INT TERM HUP
setsid prlimit --core=0 ${GIT_MEMORY_BYTES:+"--as=$GIT_MEMORY_BYTES"} ${GIT_FILE_BYTES:+"--fsize=$GIT_FILE_BYTES"} -- git "$@" &
wait "$!"
