//! The generated files: catalogs, schemas, manual pages, completions, and what the READMEs of crates
//! say about the model's experience.
//!
//! `facts` asks the registered plugins, [`pages`] turns what they say into files (purely), and
//! here the files are compared with those in the repository.
//!
//! Guarantees: no list of plugins, tools or services is kept by hand; the same plugins give the same
//! files on every machine; a check writes nothing.

mod command_line;
mod configuration;
mod facts;
mod layers;
mod markdown;
mod readme;
mod schema;
mod seams;
mod tools;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use self::facts::Facts;
use anyhow::Context as _;

/// Folders that hold generated files and nothing else.
const OWN_FOLDERS: [&str; 2] = [command_line::MANUAL, command_line::COMPLETIONS];

/// Writes the catalogs, the schemas, the manual and the completions.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail with the difference when a file is not what would be written.
    #[arg(long)]
    check: bool,
}

/// A file as it should be.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    /// Below the root of the repository.
    path: PathBuf,
    text: String,
}

impl Page {
    fn new(path: impl Into<PathBuf>, text: String) -> Self {
        Self { path: path.into(), text }
    }
}

/// `cargo xtask gen`.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let root = root();
    let pages = pages(&facts::of_the_host(root)?, root)?;
    let mut out = io::stdout();
    if options.check {
        check(&pages, root)?;
        writeln!(out, "{} generated files are fresh", pages.len())?;
        return Ok(());
    }
    let stale = differences(&pages, root)?;
    for Difference { path, text, .. } in &stale {
        write(root, path, text.as_deref()).with_context(|| path.display().to_string())?;
        writeln!(out, "{}", path.display())?;
    }
    writeln!(out, "{} of {} generated files changed", stale.len(), pages.len())?;
    Ok(())
}

/// Fails with the difference unless `pages` are what is below `root`.
fn check(pages: &[Page], root: &Path) -> anyhow::Result<()> {
    let stale = differences(pages, root)?;
    let diffs: String = stale.iter().map(|it| it.diff.as_str()).collect();
    let names: Vec<String> = stale.iter().map(|it| it.path.display().to_string()).collect();
    anyhow::ensure!(
        stale.is_empty(),
        "{diffs}\nnot fresh: {}\nhint: run `cargo xtask gen` and commit what it writes",
        names.join(", "),
    );
    Ok(())
}

/// Makes a file what it should be: one with this text, or none.
fn write(root: &Path, path: &Path, text: Option<&str>) -> io::Result<()> {
    let file = root.join(path);
    let Some(text) = text else { return fs::remove_file(file) };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, text)
}

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Every generated file. `root` is read for what stands around the generated part of a README.
fn pages(facts: &Facts, root: &Path) -> anyhow::Result<Vec<Page>> {
    let mut pages = vec![tools::page(facts), configuration::page(facts), seams::page(facts)];
    pages.extend(layers::pages(facts));
    pages.extend(command_line::pages()?);
    pages.extend(readme::pages(facts, root)?);
    Ok(pages)
}

/// A file that is not as it should be.
#[derive(Debug)]
struct Difference {
    path: PathBuf,
    /// What should be in it; none where there should be no such file.
    text: Option<String>,
    /// The same for a reader.
    diff: String,
}

/// What is stale below `root`.
fn differences(pages: &[Page], root: &Path) -> anyhow::Result<Vec<Difference>> {
    let mut stale = Vec::new();
    for Page { path, text } in pages {
        let found = read(&root.join(path))?.unwrap_or_default();
        if found != *text {
            let diff = diff(path, &found, text);
            stale.push(Difference { path: path.clone(), text: Some(text.clone()), diff });
        }
    }
    let expected: BTreeSet<&Path> = pages.iter().map(|it| it.path.as_path()).collect();
    for folder in OWN_FOLDERS {
        for path in files(root, Path::new(folder))? {
            if !expected.contains(path.as_path()) {
                let found = read(&root.join(&path))?.unwrap_or_default();
                let diff = diff(&path, &found, "");
                stale.push(Difference { path, text: None, diff });
            }
        }
    }
    Ok(stale)
}

fn diff(path: &Path, found: &str, text: &str) -> String {
    let path = path.display();
    let diff = similar::TextDiff::from_lines(found, text);
    diff.unified_diff().context_radius(2).header(&format!("{path}"), "fresh").to_string()
}

/// The text of a file, if there is one.
fn read(file: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Files of a folder that may be missing, below `root`, sorted.
fn files(root: &Path, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listing = match fs::read_dir(root.join(folder)) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut found = listing
        .map(|entry| Ok(folder.join(entry?.file_name())))
        .collect::<anyhow::Result<Vec<_>>>()?;
    found.sort();
    Ok(found)
}
