//! What can be wrong with a composition, in words.
//!
//! Guarantees: every problem names the place of its row; every text says what is wrong, with what,
//! and what to do next.

use std::{fmt, sync::Arc};

/// Where a row was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// A file name, `built in` or `command line`.
    pub origin: Arc<str>,
    /// Line in that file, from 1.
    pub line: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.origin),
            None => f.write_str(&self.origin),
        }
    }
}

/// One reason why a composition cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The place of the row; of a cycle, that of its first row.
    pub place: Place,
    /// What is wrong with it.
    pub fault: Fault,
}

/// The kinds of [`Problem`]s.
#[expect(missing_docs, reason = "fields are named after the placeholders in the message")]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Two linked crates registered the same plugin name.
    AmbiguousPlugin { plugin: &'static str },
    /// The row itself does not have the shape of a row.
    Row { message: String },
    /// A key that rows do not have.
    RowKey { key: String, similar: Option<&'static str> },
    /// A tag such as `!!js`, which asks for code to be run.
    Tag { path: String, tag: String },
    /// No linked plugin has this name.
    UnknownPlugin { plugin: String, similar: Option<&'static str>, known: Vec<&'static str> },
    /// A row of the reference host that no linked plugin implements, though one may be named almost
    /// like it.
    NotProvided { name: String, similar: Option<&'static str> },
    /// Two rows share an id.
    DuplicateRow { row: String, first: Place },
    /// The configuration does not fit.
    Config { row: String, path: String, message: String, similar: Option<String> },
    /// An item of an overlay does not have the shape of one.
    Item { message: String },
    /// An overlay is about a row that there is not.
    Target { target: String, similar: Option<String>, ids: Vec<String> },
    /// A flag of the command line configures a plugin that has no row.
    Override { plugin: String, key: String },
    /// Two rows provide the same service.
    DuplicateService { row: String, service: &'static str, first_row: String, first: Place },
    /// Two rows contribute entries of one name to a registry.
    Taken {
        row: String,
        path: &'static str,
        registry: &'static str,
        name: String,
        first_row: String,
        first: Place,
    },
    /// A required service has no provider.
    MissingService {
        row: String,
        service: &'static str,
        /// Linked plugins that provide it.
        providers: Vec<&'static str>,
        /// A row that would provide it if it ran.
        resting: Option<Resting>,
    },
    /// Rows require each other's services.
    Cycle { links: Vec<CycleLink> },
}

/// A row that does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resting {
    /// Row id.
    pub row: String,
    /// The row's place.
    pub place: Place,
    /// It belongs to a front end that was not asked for; else it is disabled.
    pub idle: bool,
}

/// One row of a cycle and what it waits for; the next one (after the last: the first) provides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleLink {
    /// Row id.
    pub row: String,
    /// The row's place.
    pub place: Place,
    /// The service it requires.
    pub service: &'static str,
}

/// Everything wrong with a composition.
#[derive(Debug, thiserror::Error)]
pub struct PlanError {
    /// The composition file.
    pub origin: Arc<str>,
    /// In the order of the rows they belong to.
    pub problems: Vec<Problem>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        let plural = if count == 1 { "" } else { "s" };
        write!(f, "cannot start {}: {count} problem{plural}", self.origin)?;
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.fault)?;
        match self.fault.hint() {
            Some(hint) => write!(f, "\n    hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AmbiguousPlugin { plugin } => {
                write!(f, "two linked crates register plugin `{plugin}`")
            }
            Self::Row { message } | Self::Item { message } => f.write_str(message),
            Self::Target { target, .. } => write!(f, "no row has the id `{target}`"),
            Self::RowKey { key, .. } => write!(f, "a row has no key `{key}`"),
            Self::Tag { path, tag } => write!(f, "{path}: tag `{tag}` is not evaluated"),
            Self::UnknownPlugin { plugin, .. } => write!(f, "no plugin is named `{plugin}`"),
            Self::NotProvided { name, .. } => {
                write!(f, "`{name}` is a DSH row that this host does not provide")
            }
            Self::DuplicateRow { row, first } => {
                write!(f, "row id `{row}` is already used at {first}")
            }
            Self::Config { row, path, message, .. } => {
                write!(f, "row `{row}`: {}: {message}", config_path(path))
            }
            Self::Override { plugin, key } => {
                write!(f, "a flag sets `{key}` of plugin `{plugin}`, which has no row")
            }
            Self::DuplicateService { row, service, first_row, first } => write!(
                f,
                "row `{row}` provides service `{service}`, which row `{first_row}` ({first}) already provides",
            ),
            Self::Taken { row, path, registry, name, first_row, first } => write!(
                f,
                "row `{row}`: {}: `{name}` is the {registry} of row `{first_row}` ({first}) already",
                config_path(path)
            ),
            Self::MissingService { row, service, .. } => {
                write!(f, "row `{row}` needs service `{service}`, which no enabled row provides")
            }
            Self::Cycle { links } => {
                write!(f, "rows wait for each other, so none of them can start first")?;
                let next = links.iter().cycle().skip(1);
                links.iter().zip(next).try_for_each(|(link, next)| {
                    let CycleLink { row, place, service } = link;
                    write!(f, "\n    row `{row}` ({place}) needs `{service}` of row `{}`", next.row)
                })
            }
        }
    }
}

impl Fault {
    /// What to do about it, unless the message says so already.
    pub fn hint(&self) -> Option<String> {
        if let Some(name) = self.similar() {
            return Some(format!("did you mean `{name}`?"));
        }
        Some(match self {
            Self::AmbiguousPlugin { .. } => "rename one of them and build again".to_owned(),
            Self::Row { .. } | Self::Config { .. } => return None,
            Self::Item { .. } => {
                "an overlay's item is `{id, config}`, `{id, disabled}` or `{insert: before|after, id, row}`"
                    .to_owned()
            }
            Self::Target { ids, .. } => format!("rows: {}", ids.join(", ")),
            Self::RowKey { .. } => {
                "a row has `name`, `id`, `disabled` and `config`; settings of the plugin go into `config`"
                    .to_owned()
            }
            Self::Tag { .. } => "write the value itself".to_owned(),
            Self::UnknownPlugin { known, .. } => format!("known plugins: {}", known.join(", ")),
            Self::NotProvided { similar: None, .. } => {
                "remove the row or set `disabled: true` in it".to_owned()
            }
            Self::NotProvided { similar: Some(name), .. } => format!(
                "did you mean `{name}`? Otherwise remove the row or set `disabled: true` in it"
            ),
            Self::DuplicateRow { .. } => "give one of the two rows its own `id`".to_owned(),
            Self::Override { plugin, .. } => format!("add a row `- name: {plugin}`"),
            Self::DuplicateService { .. } => "disable one of the two rows".to_owned(),
            Self::Taken { path, .. } => {
                format!("give each of the two rows its own `{path}`, or disable one")
            }
            Self::MissingService { resting: Some(Resting { row, place, idle }), .. } => {
                let why = if *idle {
                    "stays idle: it is the row of another front end"
                } else {
                    "is disabled"
                };
                format!("row `{row}` ({place}) provides it but {why}")
            }
            Self::MissingService { providers, .. } => match providers.as_slice() {
                [] => "no plugin of this host provides it".to_owned(),
                names => format!("add a row `- name: {}`", names.join("` or `- name: ")),
            },
            Self::Cycle { .. } => {
                "disable one of them, or use another provider of one of these services".to_owned()
            }
        })
    }

    /// The name that was probably meant.
    fn similar(&self) -> Option<&str> {
        match self {
            Self::RowKey { similar, .. } | Self::UnknownPlugin { similar, .. } => *similar,
            Self::Config { similar, .. } | Self::Target { similar, .. } => similar.as_deref(),
            _ => None,
        }
    }
}

fn config_path(path: &str) -> String {
    if path.is_empty() { "config".to_owned() } else { format!("config.{path}") }
}

/// The candidate nearest to `name`, if it is near enough to be meant; a prefix such as `@example/` or
/// `dsh-` may be too much of it.
pub(crate) fn nearest<T: AsRef<str> + Clone>(
    name: &str,
    candidates: impl IntoIterator<Item = T>,
) -> Option<T> {
    let candidates: Vec<T> = candidates.into_iter().collect();
    let shorter = || name.match_indices(['/', '-']).map(|(at, _)| &name[at + 1..]);
    let exact = |name: &str| candidates.iter().find(|it| it.as_ref() == name);
    let near = |name: &str| {
        candidates
            .iter()
            .map(|it| (strsim::damerau_levenshtein(name, it.as_ref()), it))
            .filter(|(distance, it)| *distance * 3 <= it.as_ref().chars().count().max(3))
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, it)| it)
    };
    let found = shorter().find_map(exact).or_else(|| near(name));
    found.or_else(|| shorter().find_map(near)).cloned()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_found_behind_a_prefix() {
        let known = ["mcp", "terminal", "terminal-bash", "tool-terminal"];
        for (name, expected) in [
            ("terminl", Some("terminal")),
            // Nearer to another one as a whole.
            ("dsh-terminal", Some("terminal")),
            ("deepseek-ai/dsh-terminl", Some("terminal")),
            ("@deepseek-ai/dsh-terminal-bash", Some("terminal-bash")),
            ("terminal-bsh", Some("terminal-bash")),
            ("dsh-", None),
            ("weather", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
    }
}
