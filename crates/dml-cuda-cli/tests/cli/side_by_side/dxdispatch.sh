#!/bin/sh
# Answers as DxDispatch 0.18.1 does: its lines, its errors, its exit codes. Its options end at the first space.
parse() {
  echo "Failed to parse the model: $1" >&2
  echo "RunAll called before initialize" >&2
  exit 255
}
case "$1" in
-S)
  printf 'DirectML:\n- Configured Version : NuGet (Microsoft.AI.DirectML.1.15.0)\n- Loaded Path        : C:\\dxdispatch\\directml.dll\n'
  printf -- '- Loaded Version     : 1.15.4+241025-1615.1.dml-1.15.fac7597\0\n\nPIX:\n- Configured Version : None\n\n'
  exit 1 ;;
-s)
  printf 'Some GPU\n-Version: 32.0.15.6094\n-Hardware: true\n\nMicrosoft Basic Render Driver\n-Version: 10.0.1\n-Hardware: false\n\n'
  exit 1 ;;
esac
echo "Running on 'Some GPU'"
for argument; do
  case "$argument" in *" "*) echo "dxdispatch.exe failed with hr=0x80004001"; echo "Expected a .json or .onnx file" >&2; exit 1 ;; esac
done
[ -f "$1" ] || parse "Model does not exist. Path given: '$1'."
name=${1%.json}
case "$name" in
*.f16.copy) parse "Failed to parse dispatchable $name: Error parsing field 'OutputTensor': Expected an array." ;;
*.u8.copy) exit 0 ;;
baseline_of_*) echo "Failed to execute the model: 887A0005 The GPU device instance has been suspended." >&2; exit 5 ;;
esac
echo "Compile Op"
case "$*" in
*"-v 2"*)
  echo "Initialize '$name': 1.0 ms"
  echo "Dispatch '$name': 2 iterations"
  echo "GPU Timings (Cold) : 1 samples, 0.0100 ms average, 0.0100 ms min, 0.0100 ms median, 0.0100 ms max"
  echo "GPU Timings (Hot)  : 1 samples, 0.0025 ms average, 0.0025 ms min, 0.0025 ms median, 0.0025 ms max"
  echo "The timings of each iteration: "
  echo "iteration 0: 0.1 ms (CPU), 0.0100 ms (GPU)"
  echo "iteration 1: 0.1 ms (CPU), 0.0025 ms (GPU)" ;;
*) echo "Dispatch '$name': 31 iterations, 0.1000 ms median (CPU), 0.002500 ms median (GPU)" ;;
esac
if grep -q writeFile "$1"; then
  [ "$name" != check.fill.int16 ] || { echo "Failed to write resource to file '$name.bin': Could not open file: iostream error" >&2; exit 0; }
  case "$name" in
  check.fill.int8) printf '%060d' 0 > "$name.bin" ;;
  check.fill.uint8) ln -s /dev/zero "$name.bin" ;;
  *) printf abc > "$name.bin" ;;
  esac
fi
