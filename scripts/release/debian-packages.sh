#!/usr/bin/env bash
# Unpacks Debian packages and what they depend on, without installing them: debian-packages.sh FOLDER ARCHITECTURE
# PACKAGE... Takes the machine's own sources. For the machine's architecture it leaves out what is installed, but not
# Rust, whose compiler looks for its parts next to itself.
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd) architecture=$2
shift 2
apt=$folder/.apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
: > "$apt/status"
[ "$architecture" != "$(dpkg --print-architecture)" ] ||
  awk -v RS= -v ORS='\n\n' '!/^Package: [^\n]*(rust|cargo)/' /var/lib/dpkg/status > "$apt/status"
options=(-qq -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o "Dir::State=$apt" -o "Dir::State::lists=$apt/lists"
  -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt" -o "APT::Sandbox::User=root" -o "Debug::NoLocking=1")
apt-get "${options[@]}" update
apt-get "${options[@]}" install --yes --download-only --no-install-recommends "$@" > /dev/null
for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$folder"; done
rm -rf "$apt"
