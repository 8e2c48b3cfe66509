#!/bin/bash
# Prints the folder (include/, lib/) of the pinned, prebuilt libllama. Each run checks every byte of
# it; a first run, or one that finds damage, fetches it. Standard output carries the folder alone.
# FERMATA_CACHE moves the cache. docs/hacking.md tells how to use an installed libllama instead.
set -euo pipefail
version=0.4.0   # of llama.cpp
release=3.21.1  # of the npm packages that carry it

say() { echo "libllama: $*" >&2; }
fail() { say "$@"; exit 1; }

# Per platform: sha512 of the package with the libraries, sha256 of everything unpacked.
case $(uname -s)-$(uname -m) in
  Linux-x86_64)
    platform=linux-x64
    library_sha512="Totj6RTDMGo3FoK2yNUaz/oGmZD0olAqTrRluFUWmu0k\
W2i9TOzHSW0OWCAiGkzRCVX0WsU2CyUQo/W2NYtdPA=="
    unpacked_sha256=9dfea5107334dc1eca0a10b8378ec8159d45c49b34b67c73f882197ee8809a4a
    ;;
  Linux-aarch64)
    platform=linux-arm64
    library_sha512="eI3anSEGzJiwF2rpMpZVTdHzw47LztbvfvuRzlu/fPO1\
8ROnBOd+75RPUBlV6qENPpmNtbov85+3VODwEwBurg=="
    unpacked_sha256=9432650f36b4571d115a117af2a19485f38d3deed73de31a45b4ed4b742ac889
    ;;
  *) fail "nothing prebuilt for $(uname -sm); install libllama $version, then: make LIBLLAMA=system"
esac
headers_sha512="E3N0Ev2Va0wzydvXYFwM9Hvyo07PoWjt8T/9GMc43Cvt\
8YkV/NU/tYUgEMC1grTPv2o9PRjQi0G3Wb5P/awiMg=="

cache=$(realpath -m "${FERMATA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fermata}")
folder=$cache/libllama-$version-$platform

# One sha256 over the names and bytes of all files in $1.
digest() {
  (cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) |
    sha256sum | cut -d' ' -f1
}
intact() { [ -d "$1" ] && [ "$(digest "$1")" = "$unpacked_sha256" ]; }

# fetch PACKAGE SHA512 FILE
fetch() {
  local name code
  say "fetching $1@$release"
  if ! name=$(cd "$temp" && npm pack --ignore-scripts --loglevel=error --fetch-retries=2 \
    --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000 "$1@$release" \
    2>"$temp/npm.log"); then
    code=$(sed -nE 's/^npm (ERR!|error) code //p' "$temp/npm.log" | head -n 1)
    fail "npm could not fetch $1 (${code:-no code}); check the network and npm's registry setting"
  fi
  mv "$temp/$name" "$3"
  [ "$(openssl dgst -sha512 -binary "$3" | base64 -w 0)" = "$2" ] ||
    fail "$1@$release has a wrong checksum, dropped; try again, or another registry setting of npm"
}

# Unpacks both packages into $temp/new.
unpack() {
  local new=$temp/new sources=$temp/sources git=$temp/git
  unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
  mkdir -p "$new/lib" "$new/include/jinja" "$sources" &&
    tar -xzf "$temp/libraries.tgz" -C "$new/lib" --no-same-owner --strip-components=3 \
      --wildcards 'package/bins/*/*.so' &&
    tar -xzf "$temp/headers.tgz" -C "$temp" --no-same-owner package/llama/gitRelease.bundle &&
    git init -q --bare "$git" &&
    git -C "$git" fetch -q "$temp/package/llama/gitRelease.bundle" HEAD &&
    git -C "$git" archive FETCH_HEAD include ggml/include common | tar -xf - -C "$sources" &&
    cp "$sources"/{include,ggml/include,common}/*.h "$new/include" &&
    cp "$sources"/common/jinja/*.h "$new/include/jinja"
}

if ! intact "$folder"; then
  for tool in npm openssl git flock; do
    command -v $tool >/dev/null || fail "the command $tool is missing; run: make setup"
  done
  if ! { mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ]; }; then
    fail "cannot write to $cache; set FERMATA_CACHE to a folder of yours"
  fi
  exec 9>"$cache/.libllama.lock"
  flock 9 # One fetch at a time; whoever waited finds the work done.
  if ! intact "$folder"; then
    [ ! -e "$folder" ] || say "$folder is damaged; fetching it again"
    rm -rf "$cache"/.libllama-??????
    temp=$(mktemp -d "$cache/.libllama-XXXXXX")
    trap 'rm -rf "$temp"' EXIT
    fetch "@node-llama-cpp/$platform" "$library_sha512" "$temp/libraries.tgz"
    fetch node-llama-cpp "$headers_sha512" "$temp/headers.tgz"
    unpack || fail "could not unpack into $cache; is the disk full?"
    intact "$temp/new" || fail "unpacked files differ from the pinned ones ($(digest "$temp/new"))"
    [ ! -e "$folder" ] || mv "$folder" "$temp/old"
    mv "$temp/new" "$folder"
    say "ready in $folder"
  fi
fi
echo "$folder"
