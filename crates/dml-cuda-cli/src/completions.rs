//! The completions of shells and the manual pages, both from [`Options`].

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::options::Options;

/// A script for `shell`. It shows no hidden options, and files where a command or a model can stand.
pub fn script(shell: Shell) -> String {
    let all = Options::command();
    let commands: Vec<_> = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let names: Vec<_> = commands.iter().map(Command::get_name).chain(["help"]).collect();
    // Without the models: zsh would look for the commands behind them.
    let arguments = all.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional()).cloned();
    let mut shown =
        Command::new("dml-cuda").version(env!("CARGO_PKG_VERSION")).args(arguments).subcommands(commands.clone());
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut shown, "dml-cuda", &mut text);
    let mut text = String::from_utf8_lossy(&text).into_owned();
    // True in zsh if the first word is a command. Then it has its own options.
    let a_command = format!("${{(M)words[2]:#({})}}", names.join("|"));
    let no_command = format!(r#""not __fish_dml_cuda_using_subcommand {}""#, names.join(" "));
    for (from, to) in match shell {
        // For a program with a hyphen, clap_complete 4.6 sets one name and tests for another.
        Shell::Bash => vec![("dml__subcmd__cuda", "dml__cuda".to_owned())],
        Shell::Zsh => vec![
            (r#"":: :_dml-cuda_commands""#, r#"":command or model:{_dml-cuda_commands; _files}""#.to_owned()),
            (r#""*::: :->dml-cuda""#, format!(r#"${{{a_command}:+"*::: :->dml-cuda"}}"#)),
            ("\n    _arguments ", format!("\n    _arguments ${{{a_command}:+-A}} ${{{a_command}:+\"-*\"}} ")),
            // With two colons there are no options behind the first of several files.
            ("'*::", "'*:".to_owned()),
        ],
        Shell::Fish => vec![
            (r#"needs_command" -f"#, r#"needs_command""#.to_owned()),
            (r#""__fish_dml_cuda_needs_command" -s"#, format!("{no_command} -s")),
            (r#""__fish_dml_cuda_needs_command" -l"#, format!("{no_command} -l")),
        ],
        _ => vec![],
    } {
        debug_assert!(text.contains(from), "{from}");
        text = text.replace(from, &to);
    }
    text
}

/// The page of the program, or of one of its commands.
pub fn page(command: Option<&str>) -> Result<Vec<u8>, String> {
    let mut page = Options::command().disable_help_subcommand(true);
    page.build();
    if let Some(name) = command {
        let found = page.find_subcommand(name).ok_or_else(|| format!("man: there is no command {name}"))?;
        page = found.clone();
    }
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(page).source(concat!("dml-cuda ", env!("CARGO_PKG_VERSION")));
    page.render(&mut text).map_err(|error| format!("the manual page: {error}"))?;
    Ok(text)
}
