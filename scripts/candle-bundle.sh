#!/usr/bin/env bash
# Builds the tests and the example of crates/dml-cuda-candle with candle's CUDA kernels, and adds them to gpu-bundle/.
# Takes minutes. Needs neither a GPU nor CUDA's libraries: it links against empty libraries of the same names. On the
# GPU machine run gpu-bundle/candle/run.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
NVCC=$(scripts/install-nvcc.sh)
CUDA_PATH=$(dirname "$(dirname "$(readlink -f "$NVCC")")")
export CUDA_PATH CUDA_HOME="$CUDA_PATH" PATH="$CUDA_PATH/bin:$PATH"
export CUDA_COMPUTE_CAP="${CUDA_COMPUTE_CAP:-90}"

crate=crates/dml-cuda-candle
stubs=$PWD/$crate/target/stubs
mkdir -p "$stubs"
major=$("$NVCC" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
for library in cuda cublas cublasLt curand nvrtc cudart; do
  case "$library" in cuda) soname=libcuda.so.1 ;; curand) soname=libcurand.so.10 ;; *) soname=lib$library.so.$major ;; esac
  echo | cc -shared -x c - -Wl,-soname,"$soname" -o "$stubs/lib$library.so"
done
# The libraries are linked last, and although they define no symbols: the program resolves every symbol when it starts.
link=(-L "native=$stubs" -C "link-arg=-Wl,--unresolved-symbols=ignore-all,--no-as-needed,-lcuda,-lcublas,-lcublasLt,-lcurand,-lnvrtc,-lcudart")

out=gpu-bundle/candle
rm -rf "$out" && mkdir -p "$out"
collect() {
  (cd "$crate" && cargo rustc --locked --features cuda --message-format=json "$@" -- "${link[@]}") |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' |
    while read -r path; do cp "$path" "$out/$(basename "$path" | sed 's/-[0-9a-f]*$//')"; done
}
collect --test operators
collect --example bidirectional_gru
strip "$out"/*
cat > "$out/run.sh" <<'RUN'
#!/usr/bin/env bash
# Runs the tests and the example on the first GPU, with CUDA's libraries of the machine or of Python packages.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
packages=$(python3 -c 'import site, glob; print(":".join(d for s in site.getsitepackages() for d in glob.glob(s + "/nvidia/*/lib")))')
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}:/usr/local/cuda/lib64:$packages"
${WRAP:-} "$here/operators"
"$here/bidirectional_gru"
RUN
chmod +x "$out/run.sh"
du -sh "$out"
