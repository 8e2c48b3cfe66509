#!/bin/bash
# The seven phases of training that made the model, one after another: 51 minutes on 2 cores.
# Writes checkpoint-1.pt to checkpoint-7.pt and checkpoint.pt, a copy of the last, into
# TINY_MODEL_BUILD (build/tiny-model of the repository unless set). It takes no arguments.
#
# The schedule follows the clock: another machine, or another day, gives a slightly different model.
set -euo pipefail

if [ $# -gt 0 ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
  exit 0
fi
cd "$(dirname "$0")"
build="${TINY_MODEL_BUILD:-../../build/tiny-model}"

# phase NUMBER MINUTES FROM TO END_WEIGHT SEED: where on the rate schedule the phase starts and
# stops, and the weight of the token that ends an answer. Its mix has the same number.
phase() {
  local init=()
  if [ "$1" -gt 1 ]; then init=(--init "$build/checkpoint-$(($1 - 1)).pt"); fi
  ./train.sh --mix "$1" --minutes "$2" --from-progress "$3" --to-progress "$4" \
    --end-weight "$5" --seed "$6" "${init[@]}" --out "$build/checkpoint-$1.pt"
}

phase 1 12.6 0.00 0.37 1 7
phase 2 10.1 0.37 0.66 1 11
phase 3 7.6 0.60 0.80 6 12
phase 4 5.1 0.72 0.86 4 13
phase 5 5.2 0.70 0.87 3 14
phase 6 5.1 0.70 0.92 3 15
phase 7 5.5 0.66 1.00 3 16
cp "$build/checkpoint-7.pt" "$build/checkpoint.pt"
