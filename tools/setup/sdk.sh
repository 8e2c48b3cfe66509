#!/bin/bash
# Prints the folder with node_modules of tests/sdk: other people's clients, for tests/e2e. A first
# run, or one after a change of the lock file, fetches them; npm checks each against the lock file.
# Later runs need no network. FERMATA_CACHE moves the cache.
set -euo pipefail
source=$(cd "$(dirname "$0")/../../tests/sdk" && pwd)

say() { echo "sdk: $*" >&2; }
fail() { say "$@"; exit 1; }

cache=$(realpath -m "${FERMATA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fermata}")
folder=$cache/sdk-$(sha256sum "$source/package-lock.json" | cut -c 1-16)

if [ ! -e "$folder/complete" ]; then
  for tool in npm node flock; do
    command -v $tool >/dev/null || fail "the command $tool is missing; run: make setup"
  done
  if ! { mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ]; }; then
    fail "cannot write to $cache; set FERMATA_CACHE to a folder of yours"
  fi
  exec 9>"$cache/.sdk.lock"
  flock 9 # One fetch at a time; whoever waited finds the work done.
  if [ ! -e "$folder/complete" ]; then
    rm -rf "$cache"/.sdk-?????? "$folder"
    temp=$(mktemp -d "$cache/.sdk-XXXXXX")
    trap 'rm -rf "$temp"' EXIT
    mkdir "$temp/new"
    cp "$source/package.json" "$source/package-lock.json" "$temp/new"
    say "fetching the clients that tests/sdk/package-lock.json names"
    if ! (cd "$temp/new" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error \
      --fetch-retries=2 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000) \
      >"$temp/npm.log" 2>&1 9>&-; then
      code=$(sed -nE 's/^npm (ERR!|error) code //p' "$temp/npm.log" | head -n 1)
      fail "npm failed (${code:-no code}); check the network and npm's registry setting"
    fi
    : >"$temp/new/complete"
    mv "$temp/new" "$folder"
    say "ready in $folder"
  fi
fi
echo "$folder"
