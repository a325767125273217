//! Options of DxDispatch that have no meaning here: for Direct3D, ONNX models and Xbox. They are accepted with a note.

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
    let hidden = |(short, name): (Option<char>, &'static str)| {
        Arg::new(name).long(name).short(short).hide(true)
    };
    // Also `=true` and `=false`.
    let switch = |arg: Arg| {
        let arg = arg
            .action(Set)
            .num_args(0..=1)
            .require_equals(true)
            .value_parser(BoolishValueParser::new());
        arg.default_value("false").default_missing_value("true")
    };
    let switches = named(SWITCHES).map(hidden).map(switch);
    command.args(switches.chain(named(VALUES).map(hidden).map(|arg| arg.action(Append))))
}

/// The names of those that are given.
pub fn given(matches: &ArgMatches) -> Vec<&'static str> {
    let has_value = |name: &&str| {
        let value = matches.get_many::<String>(name).and_then(Iterator::last);
        // A stream runs dispatches one after another, as with a barrier. Only `none` asks for something else.
        value.is_some_and(|value| *name != "post_dispatch_barriers" || value == "none")
    };
    let names = |list| named(list).map(|(_, name)| name);
    names(SWITCHES)
        .filter(|name| matches.get_flag(name))
        .chain(names(VALUES).filter(has_value))
        .collect()
}
