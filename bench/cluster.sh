#!/bin/sh
# SPDX-License-Identifier: MIT
# Sorts a small file over MPI on this machine, records what the ranks do, and simulates the same for 1 to 64 nodes and
# 1 TB (doc/dev/cluster.md): tables on stdout, curves in $CLUSTER_SVG (bench/work/cluster.svg).
#
#   make mpi build/gen_bam && sh bench/cluster.sh > tables.md
#
# $CLUSTER_SIZE (300M): size of the file. $CLUSTER_DIR (bench/work/cluster): file and traces. $MPI (openmpi): the MPI,
# openmpi or mpich. Needs SimGrid with Python (Debian: python3-simgrid).
set -eu
cd "$(dirname "$0")/.."
dir=${CLUSTER_DIR:-bench/work/cluster} mpi=${MPI:-openmpi}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 MPI_TRACE_APART=1
/usr/bin/python3 -c 'import simgrid' 2>/dev/null || { echo 'SimGrid for Python is missing (python3-simgrid)' >&2; exit 1; }
mkdir -p "$dir"
"mpicc.$mpi" -std=c11 -D_GNU_SOURCE -O2 -shared -fPIC -o "$dir/mpi_trace.so" bench/cluster/mpi_trace.c
[ -e "$dir/in.bam" ] || build/gen_bam --size "${CLUSTER_SIZE:-300M}" --seed 1 -o "$dir/in.bam" 2>"$dir/log"

record()  # KIND RANKS TIME OPTIONS: a sort whose trace is KIND.RANKS.TIME.*
{
    trace=$dir/$1.$2.$3 ranks=$2
    shift 3
    "mpirun.$mpi" -n "$ranks" env LD_PRELOAD="$(realpath "$dir/mpi_trace.so")" MPI_TRACE="$trace" ./samtools-omp-mpi sort \
        --no-PG -@ 1 "$@" -T "$dir/tmp" -o "$dir/out.bam" "$dir/in.bam" 2>"$dir/log" || { cat "$dir/log" >&2; exit 1; }
}

for time in a b c; do
    for ranks in 2 4 8; do
        record l1 "$ranks" "$time" -l 1 -m 600M
    done
    for ranks in 2 4; do
        record default "$ranks" "$time" -m 600M
    done
    record spilled 2 "$time" -l 1 -m 40M
done
rm -f "$dir/out.bam"
/usr/bin/python3 bench/cluster/cluster.py "$dir" "${CLUSTER_SVG:-bench/work/cluster.svg}"
