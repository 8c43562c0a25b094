//! What a publication needs of the packages of this workspace, and what their dependencies may be.
//!
//! Guarantees: reads `cargo metadata` for the locked versions and `deny.toml`, and nothing else; names
//! every package at fault. Known vulnerabilities are not its business: `cargo deny check advisories`
//! knows them, and needs a network.

use std::{fs, io::Write as _, path::Path};

use anyhow::Context as _;
use serde::Deserialize;

/// `cargo metadata`, as far as it matters.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    /// None for packages of this workspace.
    source: Option<String>,
    license: Option<String>,
    description: Option<String>,
    readme: Option<String>,
    rust_version: Option<String>,
    keywords: Vec<String>,
    categories: Vec<String>,
    /// Registries it may be published to; an empty list for none.
    publish: Option<Vec<String>>,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    kind: Option<String>,
    /// Where it is, if it is one of this workspace.
    path: Option<String>,
}

/// `deny.toml`, as far as it matters.
#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// `cargo xtask packages`.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let metadata = metadata(root)?;
    let policy = fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let problems = problems(&metadata, &toml::from_str(&policy)?);
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("\n"));
    let others = metadata.packages.iter().filter(|it| it.source.is_some()).count();
    writeln!(
        std::io::stdout(),
        "{} packages can be published; {others} dependencies have an allowed licence and source",
        metadata.packages.iter().filter(|it| it.published()).count(),
    )?;
    Ok(())
}

fn metadata(root: &Path) -> anyhow::Result<Metadata> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cannot run cargo")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "cargo metadata failed: {errors}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn problems(metadata: &Metadata, policy: &Policy) -> Vec<String> {
    let members = &metadata.workspace_members;
    let (ours, others): (Vec<_>, Vec<_>) =
        metadata.packages.iter().partition(|it| members.contains(&it.id));
    let ours = ours.into_iter().flat_map(|it| it.missing().map(move |what| it.says(&what)));
    let others = others.into_iter().flat_map(|it| {
        let source = it.foreign(&policy.sources.allow_registry);
        let license = it.unlicensed(&policy.licenses.allow);
        source.into_iter().chain(license).map(move |what| it.says(&what))
    });
    ours.chain(others).collect()
}

impl Package {
    fn published(&self) -> bool {
        self.source.is_none() && self.publish.as_ref().is_none_or(|it| !it.is_empty())
    }

    fn says(&self, what: &str) -> String {
        format!("{} {}: {what}", self.name, self.version)
    }

    /// What a publication needs and the package has not.
    fn missing(&self) -> impl Iterator<Item = String> {
        let folder = Path::new(&self.manifest_path).parent();
        let readme =
            folder.zip(self.readme.as_ref()).is_some_and(|(it, name)| it.join(name).is_file());
        let fields = [
            ("description", self.description.is_some()),
            ("license", self.license.is_some()),
            ("rust-version", self.rust_version.is_some()),
            ("keywords", !self.keywords.is_empty()),
            ("categories", !self.categories.is_empty()),
            ("README.md", readme),
        ];
        let fields = fields.into_iter().filter(|(_, there)| !there);
        let fields = fields.map(|(name, _)| format!("has no {name}"));
        // What is only there for tests is left out of a published package if it has no version. Other
        // crates may have the names of ours, and nearly the same versions.
        let needed = self.dependencies.iter().filter(|it| it.kind.is_none());
        let loose = needed.filter(|it| it.path.is_some() && !it.req.starts_with('='));
        let loose = loose.map(|it| format!("dependency {} has no exact version", it.name));
        let published = self.published();
        fields.chain(loose).filter(move |_| published)
    }

    /// Its source, unless that is one of `registries`.
    fn foreign(&self, registries: &[String]) -> Option<String> {
        let source = self.source.as_deref().unwrap_or("a folder outside of this workspace");
        let registry = source.strip_prefix("registry+");
        let allowed = registry.is_some_and(|it| registries.iter().any(|allowed| allowed == it));
        (!allowed).then(|| format!("comes from {source}, which deny.toml does not allow"))
    }

    /// Its licence, unless it can be had under those that are `allowed`.
    fn unlicensed(&self, allowed: &[String]) -> Option<String> {
        let Some(license) = &self.license else { return Some("names no licence".to_owned()) };
        let satisfied = match spdx::Expression::parse_mode(license, spdx::ParseMode::LAX) {
            Ok(expression) => expression.evaluate(|it| {
                let id = it.license.id();
                id.is_some_and(|id| allowed.iter().any(|name| name == id.name))
            }),
            Err(_) => false,
        };
        (!satisfied).then(|| format!("has the licence {license}, which deny.toml does not allow"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_can_be_published_and_their_dependencies_are_allowed() {
        run().unwrap();
    }

    fn package(change: impl FnOnce(&mut Package)) -> Package {
        let mut package = Package {
            id: "p".to_owned(),
            name: "p".to_owned(),
            version: "1.0.0".to_owned(),
            source: Some("registry+https://r".to_owned()),
            license: Some("MIT OR Apache-2.0".to_owned()),
            description: Some("d".to_owned()),
            readme: Some("Cargo.toml".to_owned()),
            rust_version: Some("1.95".to_owned()),
            keywords: vec!["k".to_owned()],
            categories: vec!["c".to_owned()],
            publish: None,
            manifest_path: concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").to_owned(),
            dependencies: Vec::new(),
        };
        change(&mut package);
        package
    }

    fn said(package: Package, ours: bool) -> Vec<String> {
        let members = if ours { vec![package.id.clone()] } else { Vec::new() };
        let policy = Policy {
            licenses: Licenses { allow: vec!["MIT".to_owned(), "ISC".to_owned()] },
            sources: Sources { allow_registry: vec!["https://r".to_owned()] },
        };
        problems(&Metadata { packages: vec![package], workspace_members: members }, &policy)
    }

    #[test]
    fn a_dependency_is_judged_by_licence_and_source() {
        let licensed =
            |text: Option<&str>| said(package(|it| it.license = text.map(str::to_owned)), false);
        for allowed in ["MIT", "MIT OR GPL-3.0-only", "GPL-3.0-only/MIT", "(MIT AND ISC) OR Zlib"] {
            assert_eq!(licensed(Some(allowed)), [""; 0], "{allowed}");
        }
        for refused in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "Apache-2.0", "whatever you like"] {
            let expected =
                format!("p 1.0.0: has the licence {refused}, which deny.toml does not allow");
            assert_eq!(licensed(Some(refused)), [expected]);
        }
        assert_eq!(licensed(None), ["p 1.0.0: names no licence"]);
        let from = |source: &str| said(package(|it| it.source = Some(source.to_owned())), false);
        assert_eq!(
            from("git+https://r"),
            ["p 1.0.0: comes from git+https://r, which deny.toml does not allow"]
        );
    }

    #[test]
    fn a_package_of_ours_says_what_a_reader_looks_for() {
        let ours = |change: fn(&mut Package)| {
            said(
                package(|it| {
                    it.source = None;
                    change(it);
                }),
                true,
            )
        };
        assert_eq!(ours(|_| {}), [""; 0]);
        assert_eq!(ours(|it| it.description = None), ["p 1.0.0: has no description"]);
        assert_eq!(
            ours(|it| it.readme = Some("NONE.md".to_owned())),
            ["p 1.0.0: has no README.md"]
        );
        let dependency = |kind: Option<&str>| Dependency {
            name: "d".to_owned(),
            req: "*".to_owned(),
            kind: kind.map(str::to_owned),
            path: Some("crates/d".to_owned()),
        };
        let with = |dependency| {
            said(
                package(|it| {
                    it.source = None;
                    it.dependencies = vec![dependency];
                }),
                true,
            )
        };
        assert_eq!(with(dependency(None)), ["p 1.0.0: dependency d has no exact version"]);
        assert_eq!(with(dependency(Some("dev"))), [""; 0]);
        // What is never published needs nothing.
        assert_eq!(
            ours(|it| {
                it.publish = Some(Vec::new());
                it.description = None;
            }),
            [""; 0]
        );
    }
}
