//! The launches of one compiled operator, with their kernels loaded.
//!
//! Each placement has a list of launches. The first is the one that selection prefers, and those after it accept pointers
//! that it does not, down to one that accepts every element's address. A dispatch takes the first that accepts its
//! pointers. For elements of 2 bytes:
//!
//! ```text
//! in place:       | multiples of 16 |  ->  | multiples of 2 |
//! out of place:   | multiples of 16 |  ->  | multiples of 4 |  ->  | multiples of 2 |
//! ```

use std::sync::Arc;

use super::driver::{Context, LoadedKernel, StreamHandle};
use super::launch::{Addresses, Launch};
use crate::error::CudaError;
use crate::options::{CompileOptions, Specialize};
use crate::placement::Placement;

/// Launches in the order in which they are tried. Empty if nothing moves.
pub(crate) type Loaded = Vec<(Launch, Arc<LoadedKernel>)>;

/// Looks up the kernels of launches, and loads those that this context uses for the first time. With `specialize=always`
/// they are compiled for the launches' sizes, if they can be.
pub(crate) fn load(
    context: &Arc<Context>,
    launches: impl IntoIterator<Item = Launch>,
    options: CompileOptions,
) -> Result<Loaded, CudaError> {
    let mut loaded = Loaded::new();
    for launch in launches {
        let specialized = match options.specialize {
            Specialize::Always => context.specialized_kernel(&launch),
            Specialize::InGraphs | Specialize::Never => None,
        };
        let kernel = match specialized {
            Some(kernel) => kernel,
            None => context.kernel(launch.entry)?,
        };
        loaded.push((launch, kernel));
    }
    Ok(loaded)
}

/// Loads the specialized kernels of launches, and the generic ones of those that have none. The specialized ones are
/// unloaded when they are dropped, which is right once their work is done.
pub(crate) fn load_briefly(
    context: &Arc<Context>,
    launches: impl IntoIterator<Item = Launch>,
) -> Result<Loaded, CudaError> {
    let mut loaded = Loaded::new();
    for launch in launches {
        let kernel = match context.brief_kernel(&launch) {
            Some(kernel) => kernel,
            None => context.kernel(launch.entry)?,
        };
        loaded.push((launch, kernel));
    }
    Ok(loaded)
}

/// Queues one operator on streams of one GPU.
#[derive(Debug)]
pub(crate) struct Launcher {
    context: Arc<Context>,
    /// In the order of `Placement::ALL`. `None` for a placement that the operator is not compiled for.
    placements: [Option<Loaded>; 2],
    options: CompileOptions,
}

impl Launcher {
    /// The launches of each placement, in the order of `Placement::ALL`.
    pub fn new(
        context: &Arc<Context>,
        placements: [Option<Loaded>; 2],
        options: CompileOptions,
    ) -> Self {
        Self {
            context: context.clone(),
            placements,
            options,
        }
    }

    /// The launches of a placement. `None` if the operator is not compiled for it.
    pub fn launches(&self, placement: Placement) -> Option<impl Iterator<Item = &Launch>> {
        placement
            .of(&self.placements)
            .as_ref()
            .map(|launches| launches.iter().map(|(launch, _)| launch))
    }

    /// Whether all its kernels are specialized.
    #[cfg(all(test, in_repository))]
    pub fn is_specialized(&self) -> bool {
        let is_generic = |(launch, kernel): &(Launch, Arc<LoadedKernel>)| {
            self.context
                .kernel(launch.entry)
                .is_ok_and(|generic| Arc::ptr_eq(&generic, kernel))
        };
        !self.placements.iter().flatten().flatten().any(is_generic)
    }

    /// Keeps the context and its kernels until the process ends.
    #[cfg(feature = "cudarc-0_19")]
    pub fn keep(&self) {
        self.context.keep();
    }

    /// Queues the first launch whose alignment the pointers satisfy. Nothing if nothing moves. A captured launch takes
    /// its specialized kernel: it is compiled once, and replayed.
    ///
    /// # Safety
    ///
    /// The promises of [`LoadedKernel::launch`], for the tensors of the operator that this was made for.
    #[allow(unsafe_code)]
    pub unsafe fn launch(
        &self,
        addresses: &Addresses<'_>,
        placement: Placement,
        stream: StreamHandle,
    ) -> Result<(), CudaError> {
        let launches = placement
            .of(&self.placements)
            .as_deref()
            .expect("the operator is compiled for the placement");
        let Some((launch, kernel)) = choose(launches, addresses) else {
            return Ok(());
        };
        let _current = self.context.enter_to_queue()?;
        let may_be_specialized =
            self.options.specialize == Specialize::InGraphs && launch.entry.specializable;
        if may_be_specialized && stream.is_capturing() {
            let no_loading = self.context.protect_capture(stream);
            let specialized = self.context.specialized_kernel(launch);
            drop(no_loading);
            if let Some(kernel) = specialized {
                // SAFETY: `LoadedKernel::launch` needs these promises. The context is current.
                return unsafe { kernel.launch(launch, addresses, stream) };
            }
        }
        // SAFETY: as above.
        unsafe { kernel.launch(launch, addresses, stream) }
    }
}

/// The first launch whose alignment the pointers satisfy. `None` if nothing moves. The last launch accepts all pointers
/// that the operator was compiled for, and binding and raw dispatch check these.
fn choose<'a, K>(
    launches: &'a [(Launch, K)],
    addresses: &Addresses<'_>,
) -> Option<&'a (Launch, K)> {
    let chosen = launches.iter().find(|(launch, _)| launch.takes(addresses));
    assert!(
        chosen.is_some() || launches.is_empty(),
        "no launch takes the pointers"
    );
    chosen
}

#[cfg(all(test, in_repository))]
mod tests {
    use super::*;
    use crate::cuda::GpuTarget;
    use crate::device::operator::bytes_of_element;
    use crate::dml_cuda_testing::descriptors::Bytes;
    use crate::dml_cuda_testing::Random;
    use crate::{BufferTensorDesc, Device, OperatorDesc, ReverseSubsequencesDesc, TensorDataType};

    #[test]
    fn the_largest_tensors_have_a_launch() {
        let sizes = [
            [1, u32::MAX - 3],
            [u32::MAX - 3, 1],
            [65535, 65536],
            [2, u32::MAX / 2 - 1],
            [u32::MAX / 3 - 1, 3],
        ];
        let types = [
            TensorDataType::UInt8,
            TensorDataType::UInt16,
            TensorDataType::UInt32,
            TensorDataType::UInt64,
        ];
        for (sizes, data_type) in sizes
            .iter()
            .flat_map(|sizes| types.map(|data_type| (sizes, data_type)))
        {
            for (axis, lengths) in [[sizes[0], 1], [1, sizes[1]]].iter().enumerate() {
                let tensor = |sizes: &[u32]| BufferTensorDesc::packed(data_type, sizes);
                let desc = ReverseSubsequencesDesc {
                    input_tensor: tensor(sizes),
                    sequence_lengths_tensor: BufferTensorDesc::packed(
                        TensorDataType::UInt32,
                        lengths,
                    ),
                    output_tensor: tensor(sizes),
                    axis: 1 - axis as u32,
                };
                let plan = Device::cpu()
                    .create_operator(desc.clone())
                    .expect("a valid operator")
                    .plan();
                for (placement, (name, target)) in Placement::ALL
                    .into_iter()
                    .flat_map(|placement| GpuTarget::NAMED.iter().map(move |of| (placement, of)))
                {
                    let what = format!(
                        "{sizes:?} {data_type:?} along {} {placement:?} {name}",
                        desc.axis
                    );
                    let least = plan
                        .select(target, placement, 0)
                        .last()
                        .map(|launch| launch.alignment);
                    let moves = placement == Placement::OutOfPlace || sizes[1 - axis] > 1;
                    assert_eq!(
                        least.is_some_and(|least| data_type
                            .size_in_bits()
                            .is_multiple_of(8 * least)),
                        moves,
                        "{what}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_plan_in_every_mode_ends_with_a_launch_for_any_pointers() {
        let mut plans = 0;
        for seed in 0..4_000 {
            let desc = Bytes(&Random(seed).bytes(512)).desc();
            let Ok(operator) = Device::cpu().create_operator(desc.clone()) else {
                continue;
            };
            let plan = operator.plan();
            let placements = if plan.runs_in_place() {
                &Placement::ALL[..]
            } else {
                &[Placement::OutOfPlace]
            };
            let is_one_element = |desc: &OperatorDesc| match desc {
                OperatorDesc::ReverseSubsequences(desc) => {
                    desc.input_tensor.sizes[desc.axis as usize] == 1
                }
                _ => false,
            };
            plans += 1;
            for (&placement, (name, target)) in placements
                .iter()
                .flat_map(|placement| GpuTarget::NAMED.iter().map(move |of| (placement, of)))
            {
                for alignment in [0, 1, 2, 4, 8, 16, 4096] {
                    let launches = plan.select(target, placement, alignment).into_iter();
                    let launches: Vec<_> = launches.map(|launch| (launch, ())).collect();
                    let nothing_moves = placement == Placement::InPlace && is_one_element(&desc);
                    let (_, before) = launches.split_last().unzip();
                    let is_left_out = |(launch, ()): &(Launch, ())| {
                        !alignment.max(1).is_multiple_of(launch.alignment)
                    };
                    assert!(
                        before.unwrap_or_default().iter().all(is_left_out),
                        "{desc:?} {alignment} {name}"
                    );
                    assert_eq!(
                        launches.is_empty(),
                        nothing_moves,
                        "{desc:?} {placement:?} {name}"
                    );
                    let least = u64::from(alignment.max(bytes_of_element(desc.output_tensor())));
                    for (n, output) in
                        (1..=16).flat_map(|n| [1, 2, 3, 16].map(|output| (n, output)))
                    {
                        let addresses = Addresses {
                            inputs: &[n * least, 4],
                            output: output * least,
                        };
                        let chosen = choose(&launches, &addresses);
                        assert!(
                            chosen.is_some() != nothing_moves,
                            "{desc:?} {placement:?} {name}"
                        );
                    }
                }
            }
        }
        assert!(plans > 800, "{plans}");
    }

    #[test]
    #[should_panic(expected = "no launch takes the pointers")]
    fn pointers_that_no_launch_takes_are_a_fault() {
        let desc = crate::dml_cuda_testing::fill(
            crate::TensorDataType::UInt8,
            &[8],
            0u8.into(),
            1i8.into(),
        );
        let plan = Device::cpu().create_operator(desc).expect("right").plan();
        let mut launches = plan.select(&GpuTarget::NAMED[0].1, Placement::OutOfPlace, 0);
        launches.iter_mut().for_each(|launch| launch.alignment = 16);
        let launches: Vec<_> = launches.into_iter().map(|launch| (launch, ())).collect();
        assert_eq!(
            choose::<()>(
                &[],
                &Addresses {
                    inputs: &[],
                    output: 8
                }
            ),
            None
        );
        choose(
            &launches,
            &Addresses {
                inputs: &[],
                output: 8,
            },
        ); // 8 is no multiple of 16
    }
}
