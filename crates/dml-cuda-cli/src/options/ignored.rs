//! Options of DxDispatch that have no meaning here: for Direct3D, ONNX models and Xbox. They are accepted with a note.

use clap::builder::BoolishValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};

enum Takes {
    /// Nothing, or `=true` and `=false`.
    Nothing,
    Text,
    /// May be repeated.
    Texts,
}
use Takes::{Nothing, Text, Texts};

const OPTIONS: [(Option<char>, &str, Takes); 24] = [
    (Some('d'), "debug", Nothing),
    (Some('q'), "queue_type", Text),
    (Some('c'), "pix_capture_type", Text),
    (Some('o'), "pix_capture_name", Text),
    (None, "post_dispatch_barriers", Text),
    (None, "disable_custom_heaps", Nothing),
    (None, "clear_shader_caches", Nothing),
    (None, "disable_gpu_timeout", Nothing),
    (None, "disable_background_processing", Nothing),
    (None, "disable_agility_sdk", Nothing),
    (None, "enable_dred", Nothing),
    (None, "set_stable_power_state", Nothing),
    (None, "present_separator", Nothing),
    (None, "print_hlsl_disassembly", Nothing),
    (None, "xbox_allow_precompile", Nothing),
    (Some('f'), "onnx_free_dim_name_override", Texts),
    (Some('F'), "onnx_free_dim_denotation_override", Texts),
    (Some('e'), "onnx_session_config_entry", Texts),
    (Some('b'), "binding_shape", Texts),
    (Some('l'), "onnx_graph_optimization_level", Text),
    (Some('L'), "onnx_logging_level", Text),
    (Some('p'), "print_onnx_bindings", Nothing),
    (Some('x'), "enable_ort_extensions", Nothing),
    (None, "enable_onnx_profiling", Nothing),
];

/// The names of the given options.
pub struct IgnoredOptions(Vec<&'static str>);

impl IgnoredOptions {
    pub fn given(&self) -> &[&'static str] {
        &self.0
    }
}

impl clap::Args for IgnoredOptions {
    fn augment_args(command: Command) -> Command {
        command.args(OPTIONS.map(|(short, name, takes)| {
            let arg = Arg::new(name).long(name).short(short).hide(true);
            match takes {
                Nothing => {
                    let arg = arg.action(ArgAction::Set).num_args(0..=1).require_equals(true);
                    arg.value_parser(BoolishValueParser::new()).default_value("false").default_missing_value("true")
                }
                Text => arg.action(ArgAction::Set),
                Texts => arg.action(ArgAction::Append),
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for IgnoredOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_given = |(_, name, takes): &(Option<char>, &str, Takes)| match takes {
            Nothing => matches.get_flag(name),
            // A stream runs dispatches one after another, as with a barrier. Only `none` asks for something else.
            Text if *name == "post_dispatch_barriers" => {
                matches.get_one::<String>(name).is_some_and(|barriers| barriers == "none")
            }
            _ => matches.value_source(name) == Some(ValueSource::CommandLine),
        };
        Ok(Self(OPTIONS.iter().filter(|option| is_given(option)).map(|(_, name, _)| *name).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
