"""A user's file for type checkers. mypy checks it with the package (python/pyproject.toml). Nothing runs it."""

from typing import Any

import dml_cuda
import dml_cuda.torch
import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type


class DeviceArray:
    """Looks like the arrays of CuPy and JAX."""

    def __dlpack__(self, *, stream: int | None = None) -> object:
        raise NotImplementedError


class CudaArray:
    """Looks like the arrays of Numba."""

    __cuda_array_interface__: dict[str, Any]


def versions() -> None:
    assert_type(dml_cuda.__version__, str)
    assert_type(dml_cuda.cuda_device_count(), int)
    assert_type(dml_cuda.onnxruntime_library_path(), str)


def reversals(
    x: npt.NDArray[np.float32],
    steps: npt.NDArray[np.int64],
    device: DeviceArray,
    cuda: CudaArray,
) -> None:
    assert_type(dml_cuda.reverse_subsequences(x, steps, 1), npt.NDArray[np.float32])
    assert_type(
        dml_cuda.reverse_subsequences(x, [[3], [2]], axis=-1), npt.NDArray[np.float32]
    )
    assert_type(
        dml_cuda.reverse_subsequences(x, 3, np.int64(1), out=x), npt.NDArray[np.float32]
    )
    assert_type(
        dml_cuda.reverse_subsequences(np.zeros((2, 3), np.int8), 3, 1),
        npt.NDArray[np.int8],
    )
    assert_type(dml_cuda.reverse_subsequences(device, 3, 1), DeviceArray)
    assert_type(
        dml_cuda.reverse_subsequences(cuda, cuda, 1, out=cuda, stream=7), CudaArray
    )
    assert_type(
        dml_cuda.reverse_subsequences(device, 3, 1, out=x), npt.NDArray[np.float32]
    )
    assert_type(dml_cuda.reverse_padded_sequence(x, [2, 3]), npt.NDArray[np.float32])
    assert_type(
        dml_cuda.reverse_padded_sequence(device, device, batch_first=True), DeviceArray
    )
    assert_type(
        dml_cuda.reverse_padded_sequence(cuda, cuda, True, out=cuda, stream=7),
        CudaArray,
    )
    dml_cuda.reverse_subsequences([1, 2, 3], 3, 0)  # type: ignore[call-overload]
    dml_cuda.reverse_subsequences(x, 3, 1.0)  # type: ignore[call-overload]


def fills(out: npt.NDArray[np.int16], device: DeviceArray, name: str) -> None:
    assert_type(
        dml_cuda.fill_value_sequence((2, 3), 10, -2, np.uint8), npt.NDArray[np.uint8]
    )
    assert_type(
        dml_cuda.fill_value_sequence(
            np.int64(3), 0.5, np.float32(2), np.dtype(np.float32)
        ),
        npt.NDArray[np.float32],
    )
    assert_type(
        dml_cuda.fill_value_sequence(np.zeros(3).shape, 0, 1, "int8"), npt.NDArray[Any]
    )
    assert_type(
        dml_cuda.fill_value_sequence(3, 0, 1, np.int8, device="cpu"),
        npt.NDArray[np.int8],
    )
    assert_type(dml_cuda.fill_value_sequence(3, 0, 1, np.int8, device="cuda:1"), Any)
    assert_type(dml_cuda.fill_value_sequence(3, 0, 1, np.int8, device=name), Any)
    assert_type(
        dml_cuda.fill_value_sequence(3, 0, 1, np.int16, out=out), npt.NDArray[np.int16]
    )
    assert_type(dml_cuda.fill_value_sequence(3, 0, 1, "int16", out=device), DeviceArray)
    dml_cuda.fill_value_sequence(2.0, 0, 1, np.int8)  # type: ignore[call-overload]
    dml_cuda.fill_value_sequence(3, "0", 1, np.int8)  # type: ignore[call-overload]
    dml_cuda.fill_value_sequence(3, 0, 1, np.int8, device=0)  # type: ignore[call-overload]


def modules(lstm: dml_cuda.torch.LSTM, x: Any) -> None:
    lstm(x)
    lstm(x, lengths=x)
    dml_cuda.torch.convert_rnns(x)
    assert_type(dml_cuda.torch.pad_packed_sequence(x), tuple[Any, Any])


def errors() -> None:
    try:
        dml_cuda.fill_value_sequence(3, 0, 1, np.int8, out=np.zeros(3, np.int8))
    except dml_cuda.ValidationError as error:
        assert_type(error.violations, list[dml_cuda.Violation])
        assert_type(error.violations[0].rule, str)
        assert_type(error.violations[0].required, str)
