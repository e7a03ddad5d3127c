#!/bin/sh
# runc for the pods of apps: gives each container a disk of its own for what it writes, as large as its limit says, and
# passes its log on at a bounded rate.
# `up` replaces each name between two @ with its value.
# The rootfs that containerd has mounted becomes the lower layer of an overlay whose upper one is that disk. It is seen
# where containerd counts the container's layer too, so that the kubelet still evicts who is over the limit.
set -eu

runc='@RUNC@' images='@IMAGES@' mounts='@MOUNTS@'
command=other root='' bundle='' log=/dev/null previous=''
for word in "$@"; do
  case "$word" in create | delete) [ "$command" = other ] && command=$word ;; esac
  case "$previous" in
    --bundle) bundle=$word ;;
    --log) log=$word ;;
    --root) root=$word ;;
  esac
  previous=$word
done
id=$previous
mounted=$mounts/$id

# As runc reports it; its standard streams are the container's.
fail() {
  printf '{"level":"error","msg":"%s"}\n' "$(printf '%s' "$1" | tr '"\\\n\t' "'/  ")" >>"$log"
  exit 1
}

release() {
  [ -d "$mounted" ] || return 0
  # Lazily: whatever still holds one of them open must not keep the container from being removed.
  for point in "$mounted/rootfs" "$mounted/counted"; do
    if [ -L "$point" ]; then umount --lazy "$(readlink "$point")" 2>/dev/null || true; fi
  done
  umount --lazy "$mounted/disk" 2>/dev/null || true
  rm -f "$mounted/rootfs" "$mounted/counted" "$mounted/stdout" "$mounted/stderr"
  rmdir "$mounted/disk" "$mounted" 2>/dev/null || true
}

# A link is made only after its mount, so that `release` never unmounts what containerd has mounted.
prepare() {
  disk=$1
  counted=$(sed -n "s|^[^ ]* [^ ]* [^ ]* [^ ]* $rootfs .*[ ,]upperdir=\([^, ]*\).*|\1|p" /proc/self/mountinfo | tail -n 1)
  [ -n "$counted" ] || return 1
  mkdir -p "$mounted/disk" "$images" || return 1
  # Of a file system, a fourteenth are inodes, one for every 4 KiB, and ext4 keeps 2 % to itself, up to 16 MiB. Some more
  # than the limit is left, since the kubelet evicts only who is seen to exceed it.
  kept=$((disk / 50 > 16777216 ? 16777216 : disk / 50))
  image=$images/$id.img
  truncate --size=$((disk + disk / 14 + kept + 4194304)) "$image" &&
    mkfs.ext4 -q -F -O ^has_journal -m 0 -b 4096 -i 4096 -I 256 -E lazy_itable_init=1,nodiscard "$image" &&
    mount -o loop,discard,noinit_itable,noatime,nodev "$image" "$mounted/disk" || { rm -f "$image"; return 1; }
  # Gone with its mount, also when the machine stops.
  rm "$image"
  mkdir "$mounted/disk/fs" "$mounted/disk/work" &&
    chown --reference="$rootfs" "$mounted/disk/fs" && chmod --reference="$rootfs" "$mounted/disk/fs" &&
    mount -t overlay overlay -o "lowerdir=$rootfs,upperdir=$mounted/disk/fs,workdir=$mounted/disk/work" "$rootfs" &&
    ln -s "$rootfs" "$mounted/rootfs" &&
    mount --bind "$mounted/disk/fs" "$counted" && ln -s "$counted" "$mounted/counted"
}

# The kubelet looks at logs every few seconds, in which containerd writes gigabytes of what an app floods it with. So
# whoever writes faster than this has to wait. They end with the last process that holds the container's end open.
pass_log_on() {
  rate=1m
  command -v pv >/dev/null || fail 'pv is not installed, which bounds the rate of logs'
  mkfifo -m 600 "$mounted/stdout" "$mounted/stderr"
  chown --reference="$rootfs" "$mounted/stdout" "$mounted/stderr"
  pv --quiet --rate-limit "$rate" <"$mounted/stdout" 2>/dev/null &
  pv --quiet --rate-limit "$rate" <"$mounted/stderr" >&2 2>/dev/null &
}

case "$command" in
  create)
    config=$bundle/config.json
    if ! grep -q '"io.kubernetes.cri.container-type":"sandbox"' "$config"; then
      rootfs=$bundle/rootfs
      # Inside of a string, these quotes would have a backslash before them.
      disk=$(sed -n 's|.*"moorage.dev/disk":"\([0-9]\{1,15\}\)".*|\1|p' "$config" | head -n 1)
      if [ -z "$disk" ]; then
        fail 'this pod does not say how much disk it may use: annotate it with moorage.dev/disk, in bytes'
      fi
      reason=$(prepare "$disk" 2>&1 </dev/null) || { release; fail "its disk of $disk bytes could not be made: $reason"; }
      case " $* " in
        # A terminal comes by another way.
        *' --console-socket '*) ;;
        *)
          pass_log_on
          exec >"$mounted/stdout" 2>"$mounted/stderr"
          rm "$mounted/stdout" "$mounted/stderr"
          ;;
      esac
    fi
    "$runc" "$@" || {
      code=$?
      release
      exit "$code"
    }
    ;;
  delete)
    code=0
    "$runc" "$@" || code=$?
    # One that runs on keeps its disk, and stays counted.
    "$runc" --root "$root" state "$id" >/dev/null 2>&1 || release
    exit "$code"
    ;;
  *) exec "$runc" "$@" ;;
esac
