#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the image of packaging/Containerfile on a system that check_root.sh or debootstrap made, so that no registry of
# images is needed, and runs lines of nf-core's modules in it. Needs podman, and the package servers of the system.
#
# usage: test/check_image.sh ROOT      the folder of the system, such as /tmp/samtools-omp-roots/trixie
# TARBALL    the result of packaging/static.sh (default: it is made)
set -eu
cd -- "$(dirname -- "$0")/.."
[ $# -eq 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
scratch=$(mktemp -d "${TMPDIR:-/tmp}/samtools-omp.XXXXXX")
base=localhost/samtools-omp-base:$$ image=localhost/samtools-omp-check:$$
trap 'rm -rf -- "$scratch"; podman rmi -f "$image" "$base" >/dev/null 2>&1' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$scratch/image" "$scratch/data"
if [ -n "${TARBALL:-}" ]; then cp -- "$TARBALL" "$scratch/image"; else packaging/static.sh "$scratch/image" >/dev/null; fi
cp "$(sh bench/build_samtools.sh static)" "$scratch/image/samtools-1.24"
tar -C "$1" --exclude=./root --exclude=./var/cache/apt/archives/*.deb -c . | podman import -q - "$base" >/dev/null
podman build -q --network=host -t "$image" --build-arg BASE="$base" -f packaging/Containerfile "$scratch/image" >/dev/null

cp test/data/NA12878.chr22.small.bam "$scratch/data/in.bam"
chmod 777 "$scratch/data"
cat >"$scratch/data/lines.sh" <<'END'
set -euo pipefail
ps -o pid= -p $$ >/dev/null
samtools cat in.bam | samtools sort -T x --threads 1 -o x.bam##idx##x.bam.csi --write-index -
samtools stats --threads 1 x.bam >x.stats
samtools flagstat --threads 1 x.bam >x.flagstat
samtools idxstats --threads 1 x.bam >x.idxstats
samtools collate -@ 1 -O -u in.bam | samtools fixmate -@ 1 -m -u - - | samtools sort -@ 1 -u - | samtools markdup -@ 1 -s -f x.markdup - y.bam
samtools index -@ 1 y.bam
for file in x.bam y.bam; do
    echo "$file: $(samtools view -c "$file") records, $(samtools view -H "$file" | grep -c 'VN:1.24+omp') lines of ours"
done
cmp <(/usr/bin/samtools flagstat x.bam) x.flagstat
cmp <(/usr/bin/samtools idxstats x.bam) x.idxstats
bash -lc 'command -v samtools bgzip-omp'
samtools --version | sed -n 4p
END
podman run --rm --network=none -v "$scratch/data:/data" -w /data "$image" bash lines.sh | tee "$scratch/said"
cat >"$scratch/wanted" <<'END'
x.bam: 10187 records, 1 lines of ours
y.bam: 10187 records, 4 lines of ours
/usr/local/bin/samtools
/usr/local/bin/bgzip-omp
Other commands: /usr/bin 1.24
END
cmp "$scratch/wanted" "$scratch/said"
