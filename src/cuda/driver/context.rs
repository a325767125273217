//! A GPU's primary context with the kernels that are loaded into it.

use std::collections::{BTreeMap, HashMap};
#[cfg(feature = "cudarc-0_19")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys::CUdevice_attribute_enum as Attribute;

use super::capture::Unrestricted;
use super::device::{attribute, describe, Properties};
use super::failure::cuda_error;
use super::handle::OwnStream;
use super::loaded_kernel::LoadedKernel;
use super::primary::{Entered, PrimaryContext};
use crate::cuda::kernels::Entry;
use crate::cuda::launch::Launch;
use crate::cuda::specialize::specialize;
use crate::cuda::target::GpuTarget;
use crate::error::{CudaError, DeviceError};
use crate::specialize::Specialize;

/// The contexts in use, one per GPU: all devices of a GPU share its loaded kernels.
static CONTEXTS: Mutex<BTreeMap<usize, Weak<Context>>> = Mutex::new(BTreeMap::new());

/// What the text of a specialized kernel depends on: the entry point, the threads of a thread block, and the
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

impl Context {
    /// The context of a GPU: the one in use, or a new one.
    pub fn of(ordinal: usize) -> Result<Arc<Self>, DeviceError> {
        let lock = || CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        let in_use = |contexts: &BTreeMap<usize, Weak<Self>>| contexts.get(&ordinal).and_then(Weak::upgrade);
        let found = in_use(&lock());
        if let Some(context) = found {
            return Ok(context);
        }
        // Opening takes long, so the lock is free. Another thread may be faster.
        let context = Arc::new(Self::new(ordinal)?);
        let mut contexts = lock();
        if let Some(other) = in_use(&contexts) {
            return Ok(other);
        }
        contexts.insert(ordinal, Arc::downgrade(&context));
        Ok(context)
    }

    fn new(ordinal: usize) -> Result<Self, DeviceError> {
        let (name, properties) = describe(ordinal)?;
        let _unrestricted = Unrestricted::enter().map_err(cuda_error("allowing calls during a capture"))?;
        let primary = PrimaryContext::retain(ordinal).map_err(cuda_error(&format!("opening device {ordinal}")))?;
        let primary = Arc::new(primary);
        let _current = primary.enter()?;
        let read = |which| attribute(primary.device, which).map_err(cuda_error("reading the limits of thread blocks"));
        let clusters =
            properties.compute_capability >= (9, 0) && read(Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)? != 0;
        let shared_memory = read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let typical = GpuTarget::with_typical_speed(shared_memory, properties.multiprocessors, clusters);
        // Drivers report 0 for what a GPU does not have, such as memory of its own.
        let or = |found: u64, typical: u32| u32::try_from(found).ok().filter(|&found| found > 0).unwrap_or(typical);
        let memory_khz = u64::from(read(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?);
        let bus_bits = u64::from(read(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?);
        let target = GpuTarget {
            bandwidth: or(2 * memory_khz * bus_bits / 8 / 1_000_000, typical.bandwidth),
            clock: or(u64::from(read(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?) / 1000, typical.clock),
            l2_cache: or(properties.l2_cache, typical.l2_cache),
            threads: or(read(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?.into(), typical.threads),
            ..typical
        };
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
            KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(self.clone());
        }
    }

    /// A kernel, loaded on first use. The driver compiles it then, so no lock is held. A thread that is slower than
    /// another drops its own.
    pub fn kernel(&self, entry: Entry) -> Result<Arc<LoadedKernel>, CudaError> {
        let lock = || self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = lock().get(&entry).cloned();
        if let Some(kernel) = loaded {
            return Ok(kernel);
        }
        let kernel = Arc::new(LoadedKernel::new(&self.primary, entry.name, entry.ptx(), self.target.shared_memory)?);
        Ok(lock().entry(entry).or_insert(kernel).clone())
    }

    /// A kernel for one launch. `None` if it shall be generic: the driver cannot compile it now, or `MAX_KEPT` stay
    /// loaded.
    pub fn specialized_kernel(&self, launch: &Launch, when: Specialize) -> Option<Arc<LoadedKernel>> {
        let Launch { entry, params, threads, .. } = launch;
        let variable = entry.variable.filter(|_| when != Specialize::Never)?;
        let lock = || self.specialized.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&specialized_for(launch)).cloned();
        if known.is_some() || (when == Specialize::Kept && !self.keeps_more()) {
            return known;
        }
        let ptx = specialize(&entry.ptx(), params, variable, *threads);
        let kernel = LoadedKernel::new(&self.primary, entry.name, ptx, self.target.shared_memory);
        let kernel = Arc::new(kernel.ok()?);
        if when == Specialize::Kept {
            self.keep_specialized(launch, kernel)
        } else {
            Some(kernel)
        }
    }

    /// Whether fewer than `MAX_KEPT` specialized kernels stay loaded.
    pub fn keeps_more(&self) -> bool {
        self.specialized.lock().unwrap_or_else(PoisonError::into_inner).len() < Specialize::MAX_KEPT
    }

    /// Keeps the specialized kernel of a launch loaded, unless it is there already. `None` if `MAX_KEPT` others stay
    /// loaded, or if the kernel is the generic one.
    pub fn keep_specialized(&self, launch: &Launch, kernel: Arc<LoadedKernel>) -> Option<Arc<LoadedKernel>> {
        let generic = self.kernels.lock().unwrap_or_else(PoisonError::into_inner).get(&launch.entry).cloned();
        if generic.is_some_and(|generic| Arc::ptr_eq(&generic, &kernel)) {
            return None;
        }
        let key = specialized_for(launch);
        let mut kept = self.specialized.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = kept.len() < Specialize::MAX_KEPT || kept.contains_key(&key);
        has_room.then(|| kept.entry(key).or_insert(kernel).clone())
    }

    /// Makes it current on the calling thread until the returned guard is dropped.
    pub(super) fn enter(&self) -> Result<Entered, CudaError> {
        self.primary.enter()
    }
}

/// What a specialized kernel is compiled from.
fn specialized_for(launch: &Launch) -> SpecializedFor {
    (launch.entry, launch.threads, launch.params.clone())
}
