//! What ran: DirectML's version, and the driver of the adapter.

/// The version that `dxdispatch -S` says is loaded, without its build number.
pub fn directml_version(text: &str) -> Option<String> {
    let section = text.lines().map(str::trim).skip_while(|line| *line != "DirectML:").skip(1);
    let loaded = section.take_while(|line| line.starts_with('-')).find(|line| line.starts_with("- Loaded Version"))?;
    // A NUL ends the text.
    let (_, version) = loaded.split_once(':')?;
    let version = version.trim().split(['+', '\0', ' ']).next()?;
    (!version.is_empty()).then(|| version.to_owned())
}

/// The driver's version that `dxdispatch -s` says of an adapter.
pub fn driver(text: &str, adapter: &str) -> Option<String> {
    let section = text.lines().map(str::trim).skip_while(|line| *line != adapter).skip(1);
    let mut facts = section.take_while(|line| line.starts_with('-'));
    facts
        .find_map(|line| ["-Version: ", "-Driver: "].iter().find_map(|name| line.strip_prefix(name)))
        .map(str::to_owned)
}

/// What is timed.
pub fn tool(directml_version: Option<String>) -> String {
    match directml_version {
        Some(version) => format!("DxDispatch with DirectML {version}"),
        None => "DxDispatch".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_directml_and_of_the_adapter() {
        let text = "DirectML:\r\n- Configured Version : NuGet (Microsoft.AI.DirectML.1.15.0)\r\n\
            - Loaded Path        : C:\\dxdispatch\\directml.dll\r\n\
            - Loaded Version     : 1.15.4+241025-1615.1.dml-1.15.fac7597\0\r\n\r\nD3D12:\r\n- Loaded Version : 1.2\r\n";
        assert_eq!(directml_version(text).as_deref(), Some("1.15.4"));
        assert_eq!(directml_version("DirectML:\n- Configured Version : None\n\nPIX:\n- Loaded Version : 1.2\n"), None);
        let text =
            "GPU 1\n-Version: 1.2.3.4\n-Hardware: true\n\nGPU\n-Hardware: true\n-Version: 5.6.7.8\n\nCPU\n-Driver: x";
        assert_eq!(driver(text, "GPU").as_deref(), Some("5.6.7.8"));
        assert_eq!((driver(text, "CPU").as_deref(), driver(text, "other")), (Some("x"), None));
    }
}
