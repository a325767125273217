#!/usr/bin/env bash
# Opens a report of two runs in a headless browser, in the sizes of a desktop and of a phone. Checks that the page has
# its parts, and that a screenshot is not blank. Installs Chromium if it may. Prints SKIPPED if there is no Chromium.
set -euo pipefail
page=$(readlink -f "$1")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  apt-get update -qq > /dev/null &&
    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core > /dev/null || true
  browser=$(command -v chromium || true)
fi
if [ -z "$browser" ]; then
  echo "SKIPPED: there is no Chromium to open the report in"
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
look() { timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$folder/profile" "$@" 2> "$folder/said"; }

if ! look --screenshot="$folder/blank.png" about:blank || [ ! -s "$folder/blank.png" ]; then
  echo "SKIPPED: $browser does not run here: $(tail -n 1 "$folder/said")"
  exit 0
fi
look --dump-dom "file://$page" > "$folder/dom"
for part in '<h2>Groups of cases</h2>' '<h2>What ran</h2>' '<h2>All cases</h2>' '<rect' '<circle' '<td class="number">'; do
  grep -q "$part" "$folder/dom" || { echo "the page in the browser has no $part" >&2; exit 1; }
done
for size in 1200,2400 400,2400; do
  look --hide-scrollbars --window-size="$size" --screenshot="$folder/blank.png" about:blank
  look --hide-scrollbars --window-size="$size" --screenshot="$folder/page.png" "file://$page"
  blank=$(stat -c %s "$folder/blank.png") shown=$(stat -c %s "$folder/page.png")
  echo "$size: a screenshot of $shown bytes, a blank one of $blank"
  [ "$shown" -gt $((5 * blank)) ] || { echo "the page is blank" >&2; exit 1; }
done
