#!/usr/bin/env bash
# Collects the test binaries, the benches, the command line tool and the C library in gpu-bundle/, stripped, for a
# machine that has a GPU and its driver but no Rust. There run gpu-bundle/run-tests.sh from the repository's root.
# scripts/gpu-bundle.sh candle adds the tests and the example of crates/dml-cuda-candle with candle's CUDA kernels,
# which takes minutes. It needs neither a GPU nor CUDA's libraries: it links against empty libraries of the same names.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
out=gpu-bundle
rm -rf "$out" && mkdir -p "$out/tests" "$out/benches"

# Copies the programs that a cargo command builds, without the hashes of their names, to a folder: collect FOLDER KIND
# COMMAND... KIND is a pattern for how cargo describes them.
collect() {
  "${@:3}" | sed -n "s/.*$2.*\"executable\":\"\([^\"]*\)\".*/\1/p" |
    while read -r path; do cp "$path" "$out/$1/$(basename "$path" | sed 's/-[0-9a-f]*$//')"; done
}

collect tests '"test":true' cargo test --quiet --tests --features cudarc-0_19 --no-run --message-format=json
DML_CUDA_COMMIT=$(git rev-parse --short HEAD)$(git diff --quiet HEAD || echo -dirty)
export DML_CUDA_COMMIT
collect benches '"test":true' cargo bench --quiet -p dml-cuda-benches --no-run --message-format=json
cargo build --profile dist --quiet
cp target/dist/dml-cuda "$out/dml-cuda"
cc crates/dml-cuda-cli/tests/cli/side_by_side/stand_in.c -o "$out/stand-in"
cargo build --profile dist --quiet -p dml-cuda-capi -p dml-cuda-torch
cp target/dist/libdml_cuda.so target/dist/libdml_cuda_torch.so "$out/"
# The name that programs of C and libdml_cuda_torch.so look for.
cp "$out/libdml_cuda.so" "$out/$(readelf -d "$out/libdml_cuda.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')"
# shellcheck disable=SC2016
cc -O1 -I crates/dml-cuda-capi/include crates/dml-cuda-capi/tests/c/devices.c -o "$out/tests/c" \
  -L "$out" -Wl,-rpath,'$ORIGIN/..' -ldml_cuda -lpthread -ldl -lm

if [ "${1:-}" = candle ]; then
  NVCC=$(scripts/install-nvcc.sh)
  CUDA_PATH=$(dirname "$(dirname "$(readlink -f "$NVCC")")")
  export CUDA_PATH CUDA_HOME="$CUDA_PATH" PATH="$CUDA_PATH/bin:$PATH"
  export CUDA_COMPUTE_CAP="${CUDA_COMPUTE_CAP:-90}"
  stubs=$PWD/crates/dml-cuda-candle/target/stubs
  mkdir -p "$stubs"
  major=$("$NVCC" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  for library in cuda cublas cublasLt curand nvrtc cudart; do
    case "$library" in cuda) soname=libcuda.so.1 ;; curand) soname=libcurand.so.10 ;; *) soname=lib$library.so.$major ;; esac
    echo | cc -shared -x c - -Wl,-soname,"$soname" -o "$stubs/lib$library.so"
  done
  # The libraries are linked last, and although they define no symbols: the program resolves every symbol when it
  # starts.
  link=(-L "native=$stubs" -C "link-arg=-Wl,--unresolved-symbols=ignore-all,--no-as-needed,-lcuda,-lcublas,-lcublasLt,-lcurand,-lnvrtc,-lcudart")
  for program in "--test operators" "--example bidirectional_gru"; do
    # shellcheck disable=SC2086
    collect tests "" cargo rustc --locked --manifest-path crates/dml-cuda-candle/Cargo.toml --features cuda \
      --message-format=json $program -- "${link[@]}"
  done
fi
strip "$out"/tests/* "$out"/benches/* "$out/dml-cuda" "$out"/*.so*

cat > "$out/run-tests.sh" <<'RUN'
#!/usr/bin/env bash
# Runs every test binary, or the named ones. WRAP is a command to run them with, such as "compute-sanitizer --tool
# memcheck". Those of candle need CUDA's libraries, of the machine or of Python packages.
set -u
bundle=$(cd "$(dirname "$0")" && pwd)
packages=$(python3 -c 'import site, glob; print(":".join(d for s in site.getsitepackages() for d in glob.glob(s + "/nvidia/*/lib")))')
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64:$packages"
export REQUIRE_CUDA="${REQUIRE_CUDA:-1}" DML_CUDA_BIN="$bundle/dml-cuda" DML_CUDA_STAND_IN="$bundle/stand-in"
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
