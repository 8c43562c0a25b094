//! Manual pages and shell completions of the host's command line.

use clap_complete::Shell;

use super::Page;

/// Folder of the manual pages.
pub(super) const MANUAL: &str = "docs/man";
/// Folder of the completions.
pub(super) const COMPLETIONS: &str = "docs/completions";

const NAME: &str = "dsh";

/// A manual page for the host and each of its commands, and completions for three shells.
pub(super) fn pages() -> anyhow::Result<Vec<Page>> {
    let mut command = dsh::command_line();
    let folder = tempfile::tempdir()?;
    clap_mangen::generate_to(command.clone(), folder.path())?;
    let mut pages = Vec::new();
    for file in super::files(folder.path(), "".as_ref())? {
        let text = std::fs::read_to_string(folder.path().join(&file))?;
        pages.push(Page::new(format!("{MANUAL}/{}", file.display()), text));
    }
    pages.sort_by(|one, other| one.path.cmp(&other.path));
    for (shell, file) in
        [(Shell::Bash, "dsh.bash"), (Shell::Zsh, "_dsh"), (Shell::Fish, "dsh.fish")]
    {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, NAME, &mut text);
        pages.push(Page::new(format!("{COMPLETIONS}/{file}"), String::from_utf8(text)?));
    }
    Ok(pages)
}
