//! Options of DxDispatch that have no meaning here: those for Direct3D, and those for ONNX models.

#[derive(clap::Args)]
pub struct IgnoredOptions {
    #[arg(short = 'd', long = "debug", hide = true)]
    debug: bool,
    #[arg(short = 'q', long = "queue_type", hide = true)]
    queue_type: Option<String>,
    #[arg(short = 'c', long = "pix_capture_type", hide = true)]
    pix_capture_type: Option<String>,
    #[arg(short = 'o', long = "pix_capture_name", hide = true)]
    pix_capture_name: Option<String>,
    #[arg(long = "post_dispatch_barriers", hide = true)]
    post_dispatch_barriers: Option<String>,
    #[arg(long = "disable_custom_heaps", hide = true)]
    disable_custom_heaps: bool,
    #[arg(long = "clear_shader_caches", hide = true)]
    clear_shader_caches: bool,
    #[arg(long = "disable_gpu_timeout", hide = true)]
    disable_gpu_timeout: bool,
    #[arg(long = "disable_background_processing", hide = true)]
    disable_background_processing: bool,
    #[arg(long = "disable_agility_sdk", hide = true)]
    disable_agility_sdk: bool,
    #[arg(long = "enable_dred", hide = true)]
    enable_dred: bool,
    #[arg(long = "set_stable_power_state", hide = true)]
    set_stable_power_state: bool,
    #[arg(long = "present_separator", hide = true)]
    present_separator: bool,
    #[arg(long = "print_hlsl_disassembly", hide = true)]
    print_hlsl_disassembly: bool,
    #[arg(long = "xbox_allow_precompile", hide = true)]
    xbox_allow_precompile: bool,
    #[arg(short = 'f', long = "onnx_free_dim_name_override", hide = true)]
    onnx_free_dim_name_override: Vec<String>,
    #[arg(short = 'F', long = "onnx_free_dim_denotation_override", hide = true)]
    onnx_free_dim_denotation_override: Vec<String>,
    #[arg(short = 'e', long = "onnx_session_config_entry", hide = true)]
    onnx_session_config_entry: Vec<String>,
    #[arg(short = 'b', long = "binding_shape", hide = true)]
    binding_shape: Vec<String>,
    #[arg(short = 'l', long = "onnx_graph_optimization_level", hide = true)]
    onnx_graph_optimization_level: Option<u32>,
    #[arg(short = 'L', long = "onnx_logging_level", hide = true)]
    onnx_logging_level: Option<u32>,
    #[arg(short = 'p', long = "print_onnx_bindings", hide = true)]
    print_onnx_bindings: bool,
    #[arg(short = 'x', long = "enable_ort_extensions", hide = true)]
    enable_ort_extensions: bool,
    #[arg(long = "enable_onnx_profiling", hide = true)]
    enable_onnx_profiling: bool,
}

impl IgnoredOptions {
    /// The given options.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let options = [
            (self.debug, "--debug"),
            (self.queue_type.is_some(), "--queue_type"),
            (self.pix_capture_type.is_some(), "--pix_capture_type"),
            (self.pix_capture_name.is_some(), "--pix_capture_name"),
            // A stream runs dispatches one after another, as with a barrier. The other values ask for just that.
            (
                self.post_dispatch_barriers.as_deref().is_some_and(|barriers| barriers == "none"),
                "--post_dispatch_barriers none",
            ),
            (self.disable_custom_heaps, "--disable_custom_heaps"),
            (self.clear_shader_caches, "--clear_shader_caches"),
            (self.disable_gpu_timeout, "--disable_gpu_timeout"),
            (self.disable_background_processing, "--disable_background_processing"),
            (self.disable_agility_sdk, "--disable_agility_sdk"),
            (self.enable_dred, "--enable_dred"),
            (self.set_stable_power_state, "--set_stable_power_state"),
            (self.present_separator, "--present_separator"),
            (self.print_hlsl_disassembly, "--print_hlsl_disassembly"),
            (self.xbox_allow_precompile, "--xbox_allow_precompile"),
            (!self.onnx_free_dim_name_override.is_empty(), "-f"),
            (!self.onnx_free_dim_denotation_override.is_empty(), "-F"),
            (!self.onnx_session_config_entry.is_empty(), "-e"),
            (!self.binding_shape.is_empty(), "-b"),
            (self.onnx_graph_optimization_level.is_some(), "-l"),
            (self.onnx_logging_level.is_some(), "-L"),
            (self.print_onnx_bindings, "-p"),
            (self.enable_ort_extensions, "-x"),
            (self.enable_onnx_profiling, "--enable_onnx_profiling"),
        ];
        options.into_iter().filter(|(given, _)| *given).map(|(_, option)| option)
    }
}
