//! Options of DxDispatch that have no meaning here: for Direct3D, ONNX models and Xbox. They are accepted with a note.

use clap::builder::BoolishValueParser;
use clap::ArgAction::{self, Append, Set, SetTrue};
use clap::{Arg, ArgMatches, Command};

/// Their names, and whether they are switches or have values.
const OPTIONS: [(Option<char>, &str, ArgAction); 24] = [
    (Some('d'), "debug", SetTrue),
    (Some('q'), "queue_type", Append),
    (Some('c'), "pix_capture_type", Append),
    (Some('o'), "pix_capture_name", Append),
    (None, "post_dispatch_barriers", Append),
    (None, "disable_custom_heaps", SetTrue),
    (None, "clear_shader_caches", SetTrue),
    (None, "disable_gpu_timeout", SetTrue),
    (None, "disable_background_processing", SetTrue),
    (None, "disable_agility_sdk", SetTrue),
    (None, "enable_dred", SetTrue),
    (None, "set_stable_power_state", SetTrue),
    (None, "present_separator", SetTrue),
    (None, "print_hlsl_disassembly", SetTrue),
    (None, "xbox_allow_precompile", SetTrue),
    (Some('f'), "onnx_free_dim_name_override", Append),
    (Some('F'), "onnx_free_dim_denotation_override", Append),
    (Some('e'), "onnx_session_config_entry", Append),
    (Some('b'), "binding_shape", Append),
    (Some('l'), "onnx_graph_optimization_level", Append),
    (Some('L'), "onnx_logging_level", Append),
    (Some('p'), "print_onnx_bindings", SetTrue),
    (Some('x'), "enable_ort_extensions", SetTrue),
    (None, "enable_onnx_profiling", SetTrue),
];

/// Adds them to a command, hidden.
pub fn accepted_by(command: Command) -> Command {
    command.args(OPTIONS.map(|(short, name, action)| {
        let arg = Arg::new(name).long(name).short(short).hide(true);
        if !matches!(action, SetTrue) {
            return arg.action(action);
        }
        // Also `=true` and `=false`.
        let arg = arg.action(Set).num_args(0..=1).require_equals(true).value_parser(BoolishValueParser::new());
        arg.default_value("false").default_missing_value("true")
    }))
}

/// The names of those that are given.
pub fn given(matches: &ArgMatches) -> Vec<&'static str> {
    let is_given = |(_, name, action): &&(Option<char>, &str, ArgAction)| {
        if matches!(action, SetTrue) {
            return matches.get_flag(name);
        }
        let value = matches.get_many::<String>(name).and_then(Iterator::last);
        // A stream runs dispatches one after another, as with a barrier. Only `none` asks for something else.
        value.is_some_and(|value| *name != "post_dispatch_barriers" || value == "none")
    };
    OPTIONS.iter().filter(is_given).map(|(_, name, _)| *name).collect()
}
