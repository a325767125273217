//! Options of DxDispatch that have no meaning here: for Direct3D, ONNX models and Xbox. They are accepted with a note, so that
//! a script that was written for DxDispatch runs unchanged.
//!
//! They are two lists of words instead of fields of [`Options`](super::Options), because nothing reads their values: a letter
//! and a name as `d:debug`, or a name alone.

use clap::builder::BoolishValueParser;
use clap::ArgAction::{Append, Set};
use clap::{Arg, ArgMatches, Command};

/// Switches, such as `-d` or `--debug`.
const SWITCHES: &str = "d:debug disable_custom_heaps clear_shader_caches disable_gpu_timeout \
    disable_background_processing disable_agility_sdk enable_dred set_stable_power_state present_separator \
    print_hlsl_disassembly xbox_allow_precompile p:print_onnx_bindings x:enable_ort_extensions enable_onnx_profiling";
/// Options with a value.
const VALUES: &str = "q:queue_type c:pix_capture_type o:pix_capture_name post_dispatch_barriers \
    f:onnx_free_dim_name_override F:onnx_free_dim_denotation_override e:onnx_session_config_entry b:binding_shape \
    l:onnx_graph_optimization_level L:onnx_logging_level";

/// The letters and names of one of the lists.
fn named(list: &'static str) -> impl Iterator<Item = (Option<char>, &'static str)> {
    list.split(' ').map(|word| {
        word.split_once(':')
            .map_or((None, word), |(letter, name)| (letter.chars().next(), name))
    })
}

/// Adds them to a command, hidden.
pub fn accepted_by(command: Command) -> Command {
    let switches = named(SWITCHES).map(hidden).map(switch);
    let values = named(VALUES).map(hidden);
    command.args(switches.chain(values.map(|arg| arg.action(Append))))
}

/// A hidden option by its letter and its name.
fn hidden((short, name): (Option<char>, &'static str)) -> Arg {
    Arg::new(name).long(name).short(short).hide(true)
}

/// A switch as DxDispatch has them: `--debug`, `--debug=true` or `--debug=false`.
fn switch(arg: Arg) -> Arg {
    arg.action(Set)
        .num_args(0..=1)
        .require_equals(true)
        .value_parser(BoolishValueParser::new())
        .default_value("false")
        .default_missing_value("true")
}

/// The names of those that are given.
pub fn given(matches: &ArgMatches) -> Vec<&'static str> {
    let mut given = Vec::new();
    for (_, name) in named(SWITCHES) {
        if matches.get_flag(name) {
            given.push(name);
        }
    }
    for (_, name) in named(VALUES) {
        match matches.get_many::<String>(name).and_then(Iterator::last) {
            // A stream runs dispatches one after another, as with a barrier. Only `none` asks for something else.
            Some(value) if name == "post_dispatch_barriers" && value != "none" => {}
            Some(_) => given.push(name),
            None => {}
        }
    }
    given
}
