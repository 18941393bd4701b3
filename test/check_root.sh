#!/bin/sh
# SPDX-License-Identifier: MIT
# Tries what a newcomer has: an empty Debian or Ubuntu, and a clone of HEAD. debootstrap makes the system in a folder.
# There ./bootstrap.sh installs what is missing, builds, and runs its commands, which are timed. Run it as root.
# Warnings of the newest compilers are errors: they show what next year's distributions will not build.
#
# usage: test/check_root.sh SUITE [COMMAND]...
#
# SUITE       bookworm, trixie, sid; noble, with MIRROR
# COMMAND     of bootstrap.sh (default: demo check)
# ROOTS       folder of the systems, one for each suite. They are kept and used again, with the packages of the last run
#             but without anything else that it installed (default: /tmp/samtools-omp-roots)
# MIRROR      (default: http://deb.debian.org/debian)
# ROOT_FILES  files and folders of this machine that a root needs, too: certificates, settings of apt and pip
# KEEP=1      leaves the clone there
set -eu
cd -- "$(dirname -- "$0")/.."
[ $# -gt 0 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
suite=$1
shift
[ $# -gt 0 ] || set -- demo check
root=${ROOTS:-/tmp/samtools-omp-roots}/$suite clone=/root/samtools-omp
for tool in debootstrap unshare chroot; do
    command -v $tool >/dev/null || { echo "check_root.sh: $tool is not here" >&2; exit 1; }
done
[ "$(id -u)" -eq 0 ] || { echo "check_root.sh: only root may make such a system" >&2; exit 1; }

if ! [ -e "$root/made" ]; then
    rm -rf -- "$root"
    mkdir -p "$root"
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "${MIRROR:-http://deb.debian.org/debian}"
    touch "$root/made"
fi
for file in /etc/resolv.conf ${ROOT_FILES:-}; do
    rm -rf -- "$root$file"
    cp -RLp --parents "$file" "$root"
done
rm -rf -- "$root$clone"
git clone -q . "$root$clone"

# Mounts are visible only in here, and end with the last process.
status=0
WERROR=1 HOME=/root unshare --mount --pid --fork sh -euc '
    root=$1 clone=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    for command; do
        started=$(date +%s)
        chroot "$root" sh -c "cd $clone && ./bootstrap.sh $command" || exit 1
        echo "== ./bootstrap.sh $command: $(($(date +%s) - started)) s, status 0"
    done' sh "$root" "$clone" "$@" || status=$?
[ -n "${KEEP:-}" ] || rm -rf -- "$root$clone"
exit $status
