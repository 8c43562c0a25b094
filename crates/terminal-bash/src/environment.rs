//! The environment of a session: the host's, minus what must not reach a shell, plus ours.

/// Parts of a name that mark a secret, in any case.
const SECRET: [&str; 4] = ["KEY", "PASSWORD", "SECRET", "TOKEN"];

/// Set by a shell that the host may run in, and wrong or harmful in a terminal of its own: size
/// and prompt of the outer one.
const OUTER_SHELL: [&str; 6] = ["LINES", "COLUMNS", "PS0", "PS1", "PS2", "PROMPT_COMMAND"];

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

/// The whole environment of a session's shell, without the dialect's hooks.
///
/// `host` are the host's variables. Of two variables of one name the last wins, as in a process.
pub fn environment(
    host: impl IntoIterator<Item = (String, String)>,
    session: SessionVariables<'_>,
) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> =
        host.into_iter().filter(|(name, _)| passes(name)).collect();
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
    let has_locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .any(|name| env.iter().any(|(it, value)| it == name && !value.is_empty()));
    if !has_locale {
        // Without one a line editor shows UTF-8 as octal escapes.
        env.push(("LC_CTYPE".to_owned(), "C.UTF-8".to_owned()));
    }
    env
}

fn passes(name: &str) -> bool {
    let upper = name.to_uppercase();
    !SECRET.iter().any(|part| upper.contains(part))
        && !upper.starts_with("DSH_")
        && !OUTER_SHELL.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_and_values(host: &[(&str, &str)]) -> Vec<(String, String)> {
        let host = host.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        environment(
            host,
            SessionVariables {
                term: "dumb",
                owner_id: "agent-1",
                session_id: "pty-3",
                plain: true,
            },
        )
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
}
