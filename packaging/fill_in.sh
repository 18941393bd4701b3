#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the recipes of a published release: a copy of packaging/ with the addresses and names of release.conf and the
# SHA-256 of the tarball. The recipes in the tree keep their placeholders. Exit status 1 if a placeholder is left.
#
# usage: packaging/fill_in.sh TARBALL FOLDER [CONF]      FOLDER is made; CONF: default packaging/release.conf
set -eu
[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
tarball=$1 folder=$2 conf=${3:-$(dirname -- "$0")/release.conf}
die() { printf 'fill_in.sh: %s\n' "$*" >&2; exit 1; }

[ -s "$tarball" ] || die "$tarball is not there: make dist makes it"
[ ! -e "$folder" ] || die "$folder is there already"
case $conf in */*) ;; *) conf=./$conf ;; esac
home='' url='' maintainer='' email='' base=''
# shellcheck disable=SC1090
. "$conf"
for value in "$home" "$url" "$maintainer" "$email" "$base"; do
    case $value in
    ''|*invalid*|samtools-omp-maintainer) die "$conf does not say all yet: '$value'" ;;
    *[\|\&\\]*) die "$conf: no |, & or \\ can be in a value: $value" ;;
    esac
done
version=$(sed -n 's/^{% set version = "\(.*\)" %}$/\1/p' "$(dirname -- "$0")/conda/meta.yaml")
case ${url##*/} in *"$version"*) ;; *) die "the recipes are of version $version, which $url does not name" ;; esac
hash=$(sha256sum <"$tarball" | cut -d' ' -f1)
# With the version left open, so that robots can raise it.
open_url=$(printf %s "$url" | sed "s|$(printf %s "$version" | sed 's/\./\\./g')|{{ version }}|g")

cp -R -- "$(dirname -- "$0")" "$folder"
rm -f -- "$folder/release.conf" "$folder/fill_in.sh"
find "$folder" -type f ! -name '*.sh' ! -name '*.md' -exec sed -i \
    -e "s|https://samtools-omp\.invalid/samtools-omp-{{ version }}\.tar\.gz|$open_url|" \
    -e "s|https://samtools-omp\.invalid/samtools-omp-[0-9.]*\.tar\.gz|$url|" \
    -e "s|maintainers@samtools-omp\.invalid|$email|" -e "s|https://samtools-omp\.invalid|$home|" \
    -e "s|samtools-omp-maintainer|$maintainer|" -e "s|^ARG BASE=.*|ARG BASE=$base|" -e "s|0\{64\}|$hash|" {} +
! grep -rnE 'samtools-omp\.invalid|0{64}|samtools-omp-maintainer' "$folder" || die 'these placeholders are left'
echo "$folder"
