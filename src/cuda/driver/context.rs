//! A GPU's primary context with the kernels that are loaded into it.

use std::collections::{BTreeMap, HashMap};
#[cfg(feature = "cudarc-0_19")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::{CUdevice, CUdevice_attribute_enum as Attribute};

use super::capture::{may_load, NoLoading, Unrestricted};
use super::device::{attribute, describe, launches_clusters, Properties};
use super::failure::cuda_error;
use super::handle::{OwnStream, StreamHandle};
use super::loaded_kernel::LoadedKernel;
use super::primary::{Entered, PrimaryContext};
use crate::cuda::kernels::Entry;
use crate::cuda::launch::Launch;
use crate::cuda::specialize::specialize;
use crate::cuda::target::GpuTarget;
use crate::error::{CudaError, DeviceError};
use crate::options::Specialize;

/// The contexts in use, one per GPU: all devices of a GPU share its loaded kernels.
static CONTEXTS: Mutex<BTreeMap<usize, Weak<Context>>> = Mutex::new(BTreeMap::new());

/// The key of a specialized kernel, on which its text depends: the entry point, the threads of a thread block, and the
/// parameters.
type SpecializedFor = (Entry, u32, Box<[u64]>);

/// A GPU's primary context, and the kernels that are loaded into it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) primary: Arc<PrimaryContext>,
    pub ordinal: usize,
    pub name: String,
    pub properties: Properties,
    pub target: GpuTarget,
    /// The stream for copying and setting memory.
    pub(super) copies: OwnStream,
    /// The live streams of this crate.
    pub(super) streams: Mutex<Vec<Arc<OwnStream>>>,
    kernels: Mutex<HashMap<Entry, Arc<LoadedKernel>>>,
    /// Specialized kernels that stay loaded.
    specialized: Mutex<HashMap<SpecializedFor, Arc<LoadedKernel>>>,
    #[cfg(feature = "cudarc-0_19")]
    kept: AtomicBool,
}

/// What a mutex guards. A thread that panicked has left it whole: nothing panics between two changes.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The properties of a GPU that selection uses.
fn target(device: CUdevice, properties: &Properties) -> Result<GpuTarget, DriverError> {
    let read = |which| attribute(device, which);
    let clusters = properties.compute_capability >= (9, 0) && launches_clusters(device)?;
    let shared_memory = read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let typical =
        GpuTarget::with_typical_speed(shared_memory, properties.multiprocessors, clusters);
    let memory_khz = u64::from(read(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?);
    let bus_bits = u64::from(read(
        Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
    )?);
    let bandwidth = 2 * memory_khz * bus_bits / 8 / 1_000_000;
    let clock = u64::from(read(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?) / 1000;
    let threads = read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?;
    Ok(GpuTarget {
        bandwidth: known_or(bandwidth, typical.bandwidth),
        clock: known_or(clock, typical.clock),
        l2_cache: known_or(properties.l2_cache, typical.l2_cache),
        threads: known_or(threads.into(), typical.threads),
        ..typical
    })
}

/// What the driver reports, or what is typical: drivers report 0 for what a GPU does not have, such as memory of its own.
fn known_or(found: u64, typical: u32) -> u32 {
    match u32::try_from(found) {
        Ok(found) if found > 0 => found,
        _ => typical,
    }
}

/// The first driver that allows a kernel to be loaded during a capture.
const LOADS_IN_CAPTURE: u32 = 12_030;

impl Context {
    /// The context of a GPU: the one in use, or a new one.
    pub fn of(ordinal: usize) -> Result<Arc<Self>, DeviceError> {
        let in_use = locked(&CONTEXTS).get(&ordinal).and_then(Weak::upgrade);
        if let Some(context) = in_use {
            return Ok(context);
        }
        // Opening takes long, so the lock is free. Another thread may be faster.
        let context = Arc::new(Self::new(ordinal)?);
        let mut contexts = locked(&CONTEXTS);
        if let Some(other) = contexts.get(&ordinal).and_then(Weak::upgrade) {
            return Ok(other);
        }
        contexts.insert(ordinal, Arc::downgrade(&context));
        Ok(context)
    }

    fn new(ordinal: usize) -> Result<Self, DeviceError> {
        let (name, properties) = describe(ordinal)?;
        let _unrestricted =
            Unrestricted::enter().map_err(cuda_error("allowing calls during a capture"))?;
        let primary = PrimaryContext::retain(ordinal)
            .map_err(cuda_error(&format!("opening device {ordinal}")))?;
        let primary = Arc::new(primary);
        let _current = primary.enter()?;
        let target = target(primary.device, &properties)
            .map_err(cuda_error("reading the limits of thread blocks"))?;
        let copies = OwnStream::new(&primary)?;
        Ok(Self {
            primary,
            ordinal,
            name,
            properties,
            target,
            copies,
            streams: Mutex::default(),
            kernels: Mutex::default(),
            specialized: Mutex::default(),
            #[cfg(feature = "cudarc-0_19")]
            kept: AtomicBool::new(false),
        })
    }

    /// Keeps the context and its kernels until the process ends.
    #[cfg(feature = "cudarc-0_19")]
    pub fn keep(self: &Arc<Self>) {
        static KEPT: Mutex<Vec<Arc<Context>>> = Mutex::new(Vec::new());
        if !self.kept.swap(true, Ordering::Relaxed) {
            locked(&KEPT).push(self.clone());
        }
    }

    /// A kernel, loaded on first use. The driver compiles it then, so no lock is held. A thread that is slower than
    /// another drops its own.
    pub fn kernel(&self, entry: Entry) -> Result<Arc<LoadedKernel>, CudaError> {
        let loaded = locked(&self.kernels).get(&entry).cloned();
        if let Some(kernel) = loaded {
            return Ok(kernel);
        }
        let kernel = Arc::new(LoadedKernel::new(
            &self.primary,
            entry.name,
            entry.ptx(),
            self.target.shared_memory,
        )?);
        let mut kernels = locked(&self.kernels);
        Ok(kernels.entry(entry).or_insert(kernel).clone())
    }

    /// Forbids the calling thread to load a kernel while it uses a stream that is being captured, if the driver would
    /// invalidate the capture.
    pub fn protect_capture(&self, stream: StreamHandle) -> Option<NoLoading> {
        (self.properties.driver_version < LOADS_IN_CAPTURE && stream.is_capturing())
            .then(NoLoading::enter)
    }

    /// A kernel for one launch, which stays loaded. `None` if it shall be generic: the driver cannot compile it now, or
    /// `MAX_KEPT` stay loaded.
    pub fn specialized_kernel(&self, launch: &Launch) -> Option<Arc<LoadedKernel>> {
        if !launch.entry.specializable {
            return None;
        }
        let key: SpecializedFor = (launch.entry, launch.grid.threads, launch.params.clone());
        {
            let kept = locked(&self.specialized);
            let known = kept.get(&key).cloned();
            if known.is_some() || kept.len() >= Specialize::MAX_KEPT {
                return known;
            }
        }
        // The driver compiles it, so no lock is held. Another thread may be faster, or take the last place.
        let kernel = self.brief_kernel(launch)?;
        let mut kept = locked(&self.specialized);
        if kept.len() >= Specialize::MAX_KEPT && !kept.contains_key(&key) {
            return None;
        }
        Some(kept.entry(key).or_insert(kernel).clone())
    }

    /// A kernel for one launch, which is unloaded when its owner drops it. `None` if it shall be generic: the driver
    /// cannot compile it now.
    pub fn brief_kernel(&self, launch: &Launch) -> Option<Arc<LoadedKernel>> {
        if !launch.entry.specializable || !may_load() {
            return None;
        }
        let ptx = specialize(&launch.entry.ptx(), &launch.params, launch.grid.threads);
        let kernel = LoadedKernel::new(
            &self.primary,
            launch.entry.name,
            ptx,
            self.target.shared_memory,
        );
        kernel.ok().map(Arc::new)
    }

    /// Makes it current for calls that queue work: [`PrimaryContext::enter_to_queue`].
    pub fn enter_to_queue(&self) -> Result<Entered, CudaError> {
        self.primary.enter_to_queue()
    }

    /// Makes it current for all other calls: [`PrimaryContext::enter`].
    pub(super) fn enter(&self) -> Result<Entered, CudaError> {
        self.primary.enter()
    }
}
