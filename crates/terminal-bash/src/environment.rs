//! The environment of a session: the host's, minus what must not reach a shell, plus ours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parts of a name that mark a secret, in any case.
const SECRET: [&str; 4] = ["KEY", "PASSWORD", "SECRET", "TOKEN"];

/// Set by a shell that the host may run in, and wrong or harmful in a terminal of its own: size
/// and prompt of the outer one.
const OUTER_SHELL: [&str; 6] = ["LINES", "COLUMNS", "PS0", "PS1", "PS2", "PROMPT_COMMAND"];

/// Begins the names of the host's own variables, in any case. None of them passes.
const OF_HOST: &str = "DSH_";

/// The locale of a session whose host has none that exists.
const UTF_8: &str = "C.UTF-8";

/// What is particular to one session.
#[derive(Clone, Copy, Debug)]
pub struct SessionVariables<'a> {
    /// `TERM`.
    pub term: &'a str,
    /// `DSH_SESSION_ID`.
    pub owner_id: &'a str,
    /// `DSH_PTY_SESSION_ID`.
    pub session_id: &'a str,
    /// Programs shall print plainly: no pager, no colours.
    pub plain: bool,
}

/// Which of the host's variables a session gets besides what is always withheld.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passing<'a> {
    /// Patterns of names that pass though they look like a secret or are denied.
    pub allow: &'a [NamePattern],
    /// Patterns of names that do not pass.
    pub deny: &'a [NamePattern],
}

/// A name of variables, or several: `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("pattern" = "^[^=\\x00]+$"))]
pub struct NamePattern(String);

impl NamePattern {
    /// What is wrong with it as a pattern of names; none if nothing is.
    pub fn problem(&self) -> Option<&'static str> {
        if self.0.is_empty() {
            Some("must not be empty")
        } else if self.0.contains(['=', '\0']) {
            Some("must be a name, or a pattern of names with `*`, without a value")
        } else {
            None
        }
    }

    /// Whether it can stand for a variable of the host's own.
    pub fn is_of_host(&self) -> bool {
        self.0.to_uppercase().starts_with(OF_HOST)
    }

    fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

/// The whole environment of a session's shell, without the dialect's hooks.
///
/// `host` are the host's variables. Of two variables of one name the last wins, as in a process.
/// `is_locale` says of a name whether this system has such a locale.
pub fn environment(
    host: impl IntoIterator<Item = (String, String)>,
    passing: Passing<'_>,
    session: SessionVariables<'_>,
    is_locale: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> =
        host.into_iter().filter(|(name, _)| passes(name, passing)).collect();
    let mut set = |name: &str, value: &str| {
        env.retain(|(it, _)| it != name);
        env.push((name.to_owned(), value.to_owned()));
    };
    set("TERM", session.term);
    if session.plain {
        set("NO_COLOR", "1");
        set("PAGER", "cat");
        set("GIT_PAGER", "cat");
    }
    set("DSH_SHELL", "1");
    // Empty, not unset: a shell gives an unset one its default, the user's own history.
    set("HISTFILE", "");
    set("DSH_SESSION_ID", session.owner_id);
    set("DSH_PTY_SESSION_ID", session.session_id);
    mend_locale(&mut env, is_locale);
    env
}

/// Takes out locales that this system does not have, which programs complain of and which a shell
/// takes for the one without any characters but ASCII; and gives one where there is none.
fn mend_locale(env: &mut Vec<(String, String)>, is_locale: impl Fn(&str) -> bool) {
    let is_category = |name: &str| name == "LANG" || name.starts_with("LC_");
    env.retain(|(name, value)| !is_category(name) || (!value.is_empty() && is_locale(value)));
    let decides = ["LC_ALL", "LC_CTYPE", "LANG"];
    if !env.iter().any(|(name, _)| decides.contains(&name.as_str())) {
        // Without one a line editor shows UTF-8 as octal escapes. Whoever lacks this one too has it
        // no worse than without.
        env.push(("LC_CTYPE".to_owned(), UTF_8.to_owned()));
    }
}

fn passes(name: &str, Passing { allow, deny }: Passing<'_>) -> bool {
    let upper = name.to_uppercase();
    if upper.starts_with(OF_HOST) || OUTER_SHELL.contains(&name) {
        return false;
    }
    let any = |patterns: &[NamePattern]| patterns.iter().any(|it| it.matches(name));
    any(allow) || !(any(deny) || SECRET.iter().any(|part| upper.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(host: &[(&str, &str)], passing: Passing<'_>) -> Vec<(String, String)> {
        let host = host.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        environment(
            host,
            passing,
            SessionVariables {
                term: "dumb",
                owner_id: "agent-1",
                session_id: "pty-3",
                plain: true,
            },
            |locale| ["C", "C.UTF-8", "en_US.UTF-8"].contains(&locale),
        )
    }

    fn names_and_values(host: &[(&str, &str)]) -> Vec<(String, String)> {
        passed(host, Passing::default())
    }

    #[test]
    fn secrets_and_the_outer_shell_stay_out() {
        let env = names_and_values(&[
            ("OPENAI_API_KEY", "x"),
            ("my_password_file", "x"),
            ("GithubToken", "x"),
            ("SECRET", "x"),
            ("DSH_HOME", "x"),
            ("dsh_home", "x"),
            ("COLUMNS", "80"),
            ("PROMPT_COMMAND", "x"),
            ("HOME", "/home/me"),
            ("LANG", "en_US.UTF-8"),
        ]);
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "HOME",
                "LANG",
                "TERM",
                "NO_COLOR",
                "PAGER",
                "GIT_PAGER",
                "DSH_SHELL",
                "HISTFILE",
                "DSH_SESSION_ID",
                "DSH_PTY_SESSION_ID"
            ]
        );
    }

    #[test]
    fn ours_replace_the_hosts_and_a_locale_is_given_where_there_is_none() {
        let env =
            names_and_values(&[("TERM", "xterm"), ("HISTFILE", "/home/me/.hist"), ("LANG", "")]);
        let value = |name: &str| {
            env.iter()
                .filter(|(it, _)| it == name)
                .map(|(_, value)| value.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(value("TERM"), ["dumb"]);
        assert_eq!(value("HISTFILE"), [""]);
        assert_eq!(value("DSH_SESSION_ID"), ["agent-1"]);
        assert_eq!(value("DSH_PTY_SESSION_ID"), ["pty-3"]);
        assert_eq!(value("LC_CTYPE"), ["C.UTF-8"]);
    }

    #[test]
    fn a_locale_that_does_not_exist_is_left_out() {
        let locale = |host: &[(&str, &str)]| {
            let env = names_and_values(host).into_iter();
            let env = env.filter(|(name, _)| name == "LANG" || name.starts_with("LC_"));
            env.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        for (host, session) in [
            (&[][..], "LC_CTYPE=C.UTF-8"),
            (&[("LANG", "tlh_KX.UTF-8")], "LC_CTYPE=C.UTF-8"),
            (&[("LC_ALL", "tlh_KX.UTF-8"), ("LANG", "en_US.UTF-8")], "LANG=en_US.UTF-8"),
            (&[("LC_TIME", "tlh_KX"), ("LANG", "C")], "LANG=C"),
            (&[("LC_TIME", "C"), ("LANGUAGE", "tlh")], "LC_TIME=C LC_CTYPE=C.UTF-8"),
            (&[("LC_ALL", "en_US.UTF-8")], "LC_ALL=en_US.UTF-8"),
        ] {
            assert_eq!(locale(host), session, "{host:?}");
        }
    }

    #[test]
    fn lists_say_what_passes_besides() {
        let host = [
            ("PATH", "/bin"),
            ("GITHUB_TOKEN", "x"),
            ("AWS_REGION", "x"),
            ("AWS_PROFILE", "x"),
            ("DSH_HOME", "x"),
            ("PS1", "x"),
        ];
        let names = |allow: &[&str], deny: &[&str]| {
            let patterns =
                |it: &[&str]| it.iter().map(|it| NamePattern((*it).to_owned())).collect::<Vec<_>>();
            let (allow, deny) = (patterns(allow), patterns(deny));
            let env = passed(&host, Passing { allow: &allow, deny: &deny }).into_iter();
            let names: Vec<String> = env.map(|(name, _)| name).collect();
            names[..names.iter().position(|it| it == "TERM").unwrap()].join(" ")
        };
        assert_eq!(names(&[], &[]), "PATH AWS_REGION AWS_PROFILE");
        assert_eq!(names(&["GITHUB_TOKEN"], &[]), "PATH GITHUB_TOKEN AWS_REGION AWS_PROFILE");
        assert_eq!(names(&["AWS_REGION"], &["AWS_*"]), "PATH AWS_REGION");
        assert_eq!(names(&["PATH", "*"], &["*"]), "PATH GITHUB_TOKEN AWS_REGION AWS_PROFILE");
        assert_eq!(names(&["PATH"], &["*"]), "PATH");
        assert_eq!(names(&[], &["*_RE*", "*PRO", "PAT", "*LE"]), "PATH");
    }

    #[test]
    fn a_pattern_is_a_name_with_gaps() {
        let matches = |pattern: &str, name: &str| NamePattern(pattern.to_owned()).matches(name);
        for (pattern, name, expected) in [
            ("A", "A", true),
            ("A", "AB", false),
            ("a", "A", false),
            ("A*", "A", true),
            ("A*A", "A", false),
            ("A*A", "AA", true),
            ("*A*B*", "xAxBx", true),
            ("*A*B*", "xBxAx", false),
            ("A**B", "AxB", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
