#!/bin/bash
# Installs what is missing of tools/setup/packages.txt: setup.sh [serve|test]. "serve" is enough to
# build and serve; "test" (the default) is everything. Without anything missing it does nothing.
set -euo pipefail
list=$(dirname "$0")/packages.txt

fail() { echo "setup: $*" >&2; exit 1; }

# The packages of the wanted headings that are not installed, one a line.
missing_packages() {
  local package command installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null |
    sed -n 's/^installed //p')
  while read -r package command; do
    case $package in
      '') continue ;;
      '[serve]') continue ;;
      '[test]') if [ "$1" = serve ]; then break; else continue; fi ;;
    esac
    if [ -n "$command" ] && command -v "$command" >/dev/null; then continue; fi
    grep -qxF "$package" <<<"$installed" || echo "$package"
  done < <(sed 's/#.*//' "$list")
}

want=${1:-test}
case $want in serve | test) ;; *) fail "unknown set '$want': use serve or test" ;; esac
command -v apt-get >/dev/null ||
  fail "no apt-get here; install what $list names with your own package manager, then: make build"

mapfile -t missing < <(missing_packages "$want")
[ ${#missing[@]} -gt 0 ] || exit 0

root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || fail "neither root nor sudo; ask root to run: $0 $want"
  root=(sudo)
fi
echo "setup: installing ${#missing[@]} Debian packages: ${missing[*]}"
"${root[@]}" apt-get update -q || fail "apt-get update failed (see above); is there a network?"
"${root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}" ||
  fail "apt-get install failed (see above); Fermata is built on Debian 12 (bookworm) or newer"
echo "setup: packages are complete"
