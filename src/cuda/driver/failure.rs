//! Errors of the driver in words.

use cudarc::driver::result::DriverError;
use cudarc::driver::sys;

use crate::error::CudaError;

/// Turns the driver's error into one that says what was being done and what to do about it.
pub(super) fn explain(verb: &str) -> impl Fn(DriverError) -> CudaError + '_ {
    use sys::CUresult as E;
    move |error| {
        CudaError {
        verb: verb.to_owned(),
        code: error.0 as u32,
        reason: error.error_string().map_or_else(
            |_| format!("{error:?}"),
            |reason| reason.to_string_lossy().into_owned(),
        ),
        advice: match error.0 {
            E::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
                "the PTX is newer than the driver: update the driver, or build with an older nvcc or with DML_CUDA_PREBUILT=1"
            }
            E::CUDA_ERROR_INVALID_PTX | E::CUDA_ERROR_NO_BINARY_FOR_GPU => {
                "the GPU must be of compute capability 7.5 or higher"
            }
            E::CUDA_ERROR_OUT_OF_MEMORY => "free GPU memory",
            E::CUDA_ERROR_NO_DEVICE | E::CUDA_ERROR_INVALID_DEVICE => "check that nvidia-smi shows the GPU",
            E::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH | E::CUDA_ERROR_SYSTEM_NOT_READY => "reinstall or restart NVIDIA's driver",
            E::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED | E::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => {
                "end the stream's capture first"
            }
            E::CUDA_ERROR_ILLEGAL_ADDRESS | E::CUDA_ERROR_LAUNCH_FAILED | E::CUDA_ERROR_MISALIGNED_ADDRESS => {
                "an earlier kernel of this process touched memory it must not; the process must end"
            }
            _ => "see this error in the documentation of the CUDA driver API",
        }
        .to_owned(),
    }
    }
}
