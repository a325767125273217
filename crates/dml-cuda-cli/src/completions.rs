//! The completions of shells and the manual pages, for `dml-cuda completions` and `dml-cuda man`.
//!
//! Both are made from [`Options`], so that they never lack an option. The crates that write them do not know everything: values
//! that only a parser knows, hidden options, a program's name with a hyphen. These are corrected here, each with its reason.

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use dml_cuda::DirectMlVersion;

use crate::options::Options;

/// A script for `shell`, as clap_complete writes it, without hidden options and commands.
pub fn script(shell: Shell) -> String {
    let versions = DirectMlVersion::recorded()
        .map(|version| version.to_string())
        .chain(["all".to_owned()]);
    // These take one of a few names, or something else that only their parsers know.
    let all = Options::command()
        .mut_arg("target", |arg| {
            arg.value_parser(["t4", "l4", "a100", "h100", "h200", "b200"])
        })
        .mut_arg("directml", |arg| {
            arg.value_parser(PossibleValuesParser::new(versions))
        });
    let commands = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned();
    let arguments = all
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .cloned();
    let mut visible = Command::new("dml-cuda")
        .version(env!("CARGO_PKG_VERSION"))
        .args(arguments)
        .subcommands(commands);
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut visible, "dml-cuda", &mut text);
    // For a program with a hyphen, clap_complete 4.6 sets one name in bash and tests for another.
    let text = String::from_utf8_lossy(&text).replace("dml__subcmd__cuda", "dml__cuda");
    // Bash completes files itself, and quotes their spaces, if a function offers nothing.
    text.replace(r#"COMPREPLY=($(compgen -f "${cur}"))"#, "COMPREPLY=()")
}

/// The page of the program, or of one of its commands.
pub fn page(command: Option<&str>) -> Result<Vec<u8>, String> {
    let mut page = Options::command().disable_help_subcommand(true);
    page.build();
    if let Some(name) = command {
        page = page
            .find_subcommand(name)
            .ok_or_else(|| format!("man: there is no command {name}"))?
            .clone();
    }
    // clap_mangen leaves out the texts of options that the short help leaves out.
    let page = page.mut_args(|arg| arg.hide_short_help(false));
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(page).source(concat!("dml-cuda ", env!("CARGO_PKG_VERSION")));
    page.render(&mut text)
        .map_err(|error| format!("the manual page: {error}"))?;
    text.extend_from_slice(SECTIONS.as_bytes());
    Ok(text)
}

/// The sections of the manual page that clap does not write.
const SECTIONS: &str = r".SH EXIT STATUS
0 if all went well. 1 if a model, a case or a file failed, or with \-\-validate a dispatchable is rejected. 2 if the options cannot be parsed,
or with report \-\-fail\-on\-slower if the machine was not the same. 128 and a signal's number if one ended it: 130 by Ctrl\-C, 143 by SIGTERM.
.SH EXAMPLES
.nf
dml\-cuda model.json
dml\-cuda \-\-validate \-\-directml all model.json
dml\-cuda bench \-o linux.json
dml\-cuda.exe bench \-\-runner dxdispatch.exe \-o windows.json
dml\-cuda report windows.json linux.json \-o report.html
.fi
.SH FORMATS
MODEL.json: a model of DxDispatch. RESULTS.json: a results file that bench writes and report reads. A model reads the files of its sourcePath members, and
writes those of its targetPath members.
";
