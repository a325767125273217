//! Describes errors of the driver.

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUresult::{self, *};

use crate::error::CudaError;

/// Advice for errors of the driver.
const ADVICE: &[(&[CUresult], &str)] = &[
    (
        &[CUDA_ERROR_UNSUPPORTED_PTX_VERSION],
        "the PTX is newer than the driver: update the driver, or build without DML_CUDA_NVCC, because kernels/prebuilt loads with drivers from CUDA 12.0 on",
    ),
    (&[CUDA_ERROR_INVALID_PTX, CUDA_ERROR_NO_BINARY_FOR_GPU], "the GPU must have compute capability 7.5 or higher"),
    (&[CUDA_ERROR_OUT_OF_MEMORY], "free GPU memory"),
    (
        &[CUDA_ERROR_NO_DEVICE, CUDA_ERROR_INVALID_DEVICE],
        "check that nvidia-smi shows the GPU, and that CUDA_VISIBLE_DEVICES does not hide it",
    ),
    (
        &[CUDA_ERROR_SYSTEM_NOT_READY],
        "start the service nvidia-fabricmanager, which GPUs with NVSwitch need, in the driver's version",
    ),
    (
        &[CUDA_ERROR_SYSTEM_DRIVER_MISMATCH],
        "the driver's library and its kernel module have different versions: restart the machine after an update of the driver, and let a container use the host's library",
    ),
    (
        &[CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE],
        "a forward-compatibility library (package cuda-compat, folder /usr/local/cuda/compat) was loaded, which this GPU or driver does not support: remove it from LD_LIBRARY_PATH or from the container's image, or update the host's driver",
    ),
    (
        &[CUDA_ERROR_UNKNOWN],
        "while the driver starts, usual causes are device nodes that are missing in a container (/dev/nvidia-uvm, /dev/nvidiactl, /dev/nvidia0: start it with --gpus all, or run nvidia-modprobe -u on the host) and a driver that was updated without a restart",
    ),
    (&[CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT], "end the stream's capture first"),
    (
        &[CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_MISALIGNED_ADDRESS],
        "an earlier kernel of this process touched memory it must not; the process must end",
    ),
];

/// Turns the driver's error into one that says which call failed and what to do about it.
///
/// Compares and prints results as numbers, because a newer driver may return one that cudarc's enum does not have. That
/// such a number passes through a value of the enum remains a risk, which is why this repository and its programs use
/// the newest bindings (`.cargo/config.toml`).
pub(super) fn cuda_error(verb: &str) -> impl Fn(DriverError) -> CudaError + '_ {
    move |error| {
        let code = error.0 as u32;
        let reason = error
            .error_string()
            .map(|reason| reason.to_string_lossy().into_owned());
        let advice = ADVICE
            .iter()
            .find(|(results, _)| results.iter().any(|result| *result as u32 == code));
        CudaError {
            verb: verb.to_owned(),
            code,
            reason: reason.unwrap_or_else(|_| "the driver does not describe it".to_owned()),
            advice: advice
                .map_or(
                    "see this error in the documentation of the CUDA driver API",
                    |(_, advice)| advice,
                )
                .to_owned(),
        }
    }
}
