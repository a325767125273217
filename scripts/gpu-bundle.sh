#!/usr/bin/env bash
# Collects the test binaries, the benches, the runner and the C library in gpu-bundle/, stripped, for a machine that has
# a GPU and its driver but no Rust. There run gpu-bundle/run-tests.sh from the repository's root.
set -euo pipefail
cd "$(dirname "$0")/.."
out=gpu-bundle
rm -rf "$out" && mkdir -p "$out/tests" "$out/benches"

# Copies the tests or benches that cargo builds, without the hashes of their names, to a folder: collect FOLDER
# COMMAND...
collect() {
  cargo "${@:2}" --no-run --message-format=json 2> /dev/null | sed -n 's/.*"profile":{[^}]*"test":true.*"executable":"\([^"]*\)".*/\1/p' |
    while read -r path; do cp "$path" "$out/$1/$(basename "$path" | sed 's/-[0-9a-f]*$//')"; done
}

collect tests test --tests --features cudarc-0_19
DML_CUDA_COMMIT=$(git rev-parse --short HEAD)$(git diff --quiet HEAD || echo -dirty)
export DML_CUDA_COMMIT
collect benches bench --bench host --bench startup
cargo build --release --quiet
cp target/release/dml-cuda "$out/dml-cuda"
cargo build --release --quiet -p dml-cuda-capi -p dml-cuda-torch
cp target/release/libdml_cuda.so target/release/libdml_cuda_torch.so "$out/"
# The name that libdml_cuda_torch.so looks for.
cp "$out/libdml_cuda.so" "$out/$(readelf -d "$out/libdml_cuda.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')"
strip "$out"/tests/* "$out"/benches/* "$out/dml-cuda" "$out"/*.so*

cat > "$out/run-tests.sh" <<'RUN'
#!/usr/bin/env bash
# Runs every test binary, or the named ones. WRAP is a command to run them with, such as "compute-sanitizer --tool
# memcheck".
set -u
bundle=$(cd "$(dirname "$0")" && pwd)
export REQUIRE_CUDA="${REQUIRE_CUDA:-1}" DML_CUDA_BIN="$bundle/dml-cuda"
failed=0
for test in "$bundle"/tests/*; do
  name=$(basename "$test")
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  echo "== $name"
  # shellcheck disable=SC2086
  ${WRAP:-} "$test" ${TEST_ARGS:-} || { echo "FAILED: $name"; failed=1; }
done
exit $failed
RUN
chmod +x "$out/run-tests.sh"
du -sh "$out"
