//! Errors of the driver in words.

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUresult::{self, *};

use crate::error::CudaError;

/// Advice for errors of the driver.
const ADVICE: &[(&[CUresult], &str)] = &[
    (
        &[CUDA_ERROR_UNSUPPORTED_PTX_VERSION],
        "the PTX is newer than the driver: update the driver, or build with an older nvcc or with DML_CUDA_PREBUILT=1",
    ),
    (&[CUDA_ERROR_INVALID_PTX, CUDA_ERROR_NO_BINARY_FOR_GPU], "the GPU must be of compute capability 7.5 or higher"),
    (&[CUDA_ERROR_OUT_OF_MEMORY], "free GPU memory"),
    (&[CUDA_ERROR_NO_DEVICE, CUDA_ERROR_INVALID_DEVICE], "check that nvidia-smi shows the GPU"),
    (&[CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_NOT_READY], "reinstall or restart NVIDIA's driver"),
    (&[CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT], "end the stream's capture first"),
    (
        &[CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_MISALIGNED_ADDRESS],
        "an earlier kernel of this process touched memory it must not; the process must end",
    ),
];

/// Turns the driver's error into one that says which call failed and what to do about it.
///
/// Compares and prints results as numbers, because a newer driver may return one that cudarc's enum does not have.
pub(super) fn cuda_error(verb: &str) -> impl Fn(DriverError) -> CudaError + '_ {
    move |error| {
        let code = error.0 as u32;
        let reason = error.error_string().map(|reason| reason.to_string_lossy().into_owned());
        let advice = ADVICE.iter().find(|(results, _)| results.iter().any(|result| *result as u32 == code));
        CudaError {
            verb: verb.to_owned(),
            code,
            reason: reason.unwrap_or_else(|_| "the driver has no words for it".to_owned()),
            advice: advice
                .map_or("see this error in the documentation of the CUDA driver API", |(_, advice)| advice)
                .to_owned(),
        }
    }
}
