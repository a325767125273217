#!/usr/bin/env bash
# Opens a report of two runs in a headless browser, in the sizes of a desktop, a phone and a page of paper, light and
# dark. Checks that the page has its parts, that a screenshot is not blank, and by check-report.js that contrast, the
# keyboard's focus and the print are as they must be. Installs Chromium if it may. Prints SKIPPED if there is none.
set -euo pipefail
script=$(dirname "$(readlink -f "$0")")/check-report.js
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
look() {
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
    --user-data-dir="$folder/profile" "$@" 2> "$folder/said"
}
{ cat "$1"; echo "<script>"; cat "$script"; echo "</script>"; } > "$folder/checked.html"
cp "$1" "$folder/page.html"

if ! look --screenshot="$folder/blank.png" about:blank || [ ! -s "$folder/blank.png" ]; then
  echo "SKIPPED: $browser does not run here: $(tail -n 1 "$folder/said")"
  exit 0
fi
for size in 1200,2400 400,2400; do
  look --window-size="$size" --screenshot="$folder/blank.png" about:blank
  look --window-size="$size" --screenshot="$folder/page.png" "file://$folder/page.html"
  blank=$(stat -c %s "$folder/blank.png") shown=$(stat -c %s "$folder/page.png")
  echo "$size: a screenshot of $shown bytes, a blank one of $blank"
  [ "$shown" -gt $((5 * blank)) ] || { echo "the page is blank" >&2; exit 1; }
done
for view in "1200,2400 1" "400,2400 1" "1200,2400 0" "400,2400 0" "794,1123 1 #print" "794,1123 0 #print"; do
  read -r size scheme print <<< "$view" # 0 is dark
  look --window-size="$size" --blink-settings=preferredColorScheme="$scheme" --dump-dom "file://$folder/checked.html$print" > "$folder/dom"
  for part in '<h2 id="groups">Groups of cases</h2>' '>What ran</h2>' '>All cases</h2>' '<rect' '<circle' '<td class="number">'; do
    grep -q "$part" "$folder/dom" || { echo "the page in the browser has no $part" >&2; exit 1; }
  done
  found=$(sed -n 's/.*<pre id="faults">//; T; :line; s/<\/pre>.*//; T more; p; q; :more; N; b line' "$folder/dom")
  echo "$view: $found"
  [[ $found == "no faults of "* ]]
done
