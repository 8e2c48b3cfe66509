#!/bin/bash
# Start train.py with the settings that make it fast on a small machine. Arguments are passed on:
#
#   train.sh --help
#
# Threads that wait must not spin, and freed tensors must not go back to the kernel at every step.
set -euo pipefail
cd "$(dirname "$0")"
make --silent kernels
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-2}" OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
export OMP_WAIT_POLICY=passive
export MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TRIM_THRESHOLD_=16000000000
export MALLOC_TOP_PAD_=134217728 MALLOC_ARENA_MAX=2
exec nice -n 5 "${PYTHON:-/usr/bin/python3}" train.py "$@"
