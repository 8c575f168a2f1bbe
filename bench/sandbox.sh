#!/bin/bash
# What a sandbox is at least, by hand: namespaces, an overlay, a command, the changes, all thrown away.
#   sandbox.sh PROJECT PLACE
mkdir -p "$2/upper" "$2/work"
options="userxattr,volatile,lowerdir=$1,upperdir=$2/upper,workdir=$2/work"
unshare --user --map-root-user --mount --pid --ipc --net --fork \
    sh -c 'mount -t overlay overlay -o "$1" "$2" && cd "$2" && touch new' sh "$options" "$1"
found=$(find "$2/upper" -mindepth 1)
# An ordinary user has to open what the kernel has made in `work`.
rm -rf "$2" 2> /dev/null || { chmod -R u+rwX "$2"; rm -rf "$2"; }
[ "$found" = "$2/upper/new" ]
