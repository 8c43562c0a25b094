//! `dsh doctor`: what this machine allows sessions, what was chosen, and what would help.
//!
//! Who knows about a matter looks at it: each part of the host has a function that returns its
//! [`Finding`]s, and they are put in a row here. Exit status 1 means that sessions do not work.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use dsh_core::{Finding, Grade};

use crate::{cli::Doctor, failure::Failure};

/// Starts the supervisor to see whether it can be; call it before there is a second thread.
pub(crate) fn supervisor() -> Finding {
    const TOPIC: &str = "supervisor";
    match subprocess::start_supervisor(subprocess::Reach::Everything) {
        Ok(()) => Finding::good(
            TOPIC,
            "a small process outlives the host when that is killed, and ends its sessions",
        ),
        Err(error) => Finding::weaker(
            TOPIC,
            error.to_string(),
            "start `dsh` itself, or call subprocess::start_supervisor first in `main`",
        ),
    }
}

/// Looks at everything and prints it.
pub(crate) fn run(args: &Doctor, supervisor: Option<Finding>) -> Result<ExitCode, Failure> {
    let mut findings = subprocess::findings();
    findings.extend(supervisor);
    findings.push(records());
    findings.push(sandbox_landlock::finding());
    findings.push(sandbox_bubblewrap::finding());
    findings.push(shells());
    findings.push(locale(|it| std::env::var(it).ok()));
    findings.push(term("xterm-256color"));
    let works = findings.iter().all(|it| it.grade != Grade::Broken);
    let text = if args.json {
        let report = serde_json::json!({ "works": works, "findings": findings });
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        text(&findings, works)
    };
    std::io::stdout().write_all(text.as_bytes()).context("cannot print")?;
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A line each, what to do below it, and the verdict.
fn text(findings: &[Finding], works: bool) -> String {
    let width = findings.iter().map(|it| it.topic.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for it in findings {
        let grade = match it.grade {
            Grade::Good => "good  ",
            Grade::Weaker => "weaker",
            Grade::Broken => "BROKEN",
        };
        let topic = it.topic;
        lines.push(format!("{grade}  {topic:width$}  {}", it.found));
        if let Some(advice) = &it.advice {
            lines.push(format!("        {:width$}  -> {advice}", ""));
        }
    }
    let weaker = findings.iter().filter(|it| it.grade == Grade::Weaker).count();
    let verdict = match (works, weaker) {
        (false, _) => "Sessions do not work here before what is broken is mended.".to_owned(),
        (true, 0) => "Sessions work here.".to_owned(),
        (true, _) => format!("Sessions work here; {weaker} of these could be better."),
    };
    lines.extend([String::new(), verdict, String::new()]);
    lines.join("\n")
}

/// Whether the host may leave word of itself for the next start.
fn records() -> Finding {
    const TOPIC: &str = "home";
    let advice = "set DSH_HOME to a folder that you may write";
    let home = match dsh_core::home::folder(None) {
        Ok(home) => home,
        Err(error) => return Finding::weaker(TOPIC, error.to_string(), advice),
    };
    // The nearest folder that exists decides.
    let there = home.ancestors().find(|it| it.exists()).unwrap_or(Path::new("/"));
    let shown = home.display();
    if !there.is_dir() {
        let found = format!("{} is no folder, so {shown} cannot be one", there.display());
        return Finding::weaker(TOPIC, found, advice);
    }
    match rustix::fs::access(there, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Finding::good(
            TOPIC,
            format!("{shown} keeps logs, transcripts, and word of this host for the next start"),
        ),
        Err(error) => Finding::weaker(TOPIC, format!("{shown} cannot be written: {error}"), advice),
    }
}

/// Which shells a session can have.
fn shells() -> Finding {
    const TOPIC: &str = "shells";
    let there: Vec<_> = ["/bin/bash", "/usr/bin/zsh", "/usr/bin/fish"]
        .into_iter()
        .filter(|it| Path::new(it).exists())
        .collect();
    if there.contains(&"/bin/bash") {
        return Finding::good(TOPIC, format!("{}; the default is /bin/bash", there.join(", ")));
    }
    Finding::broken(
        TOPIC,
        "the default shell, /bin/bash, is not there",
        "install bash, or set shellDialect and shellPath of the row terminal-bash",
    )
}

/// Which locale decides about characters, given the host's variables.
fn locale(variable: impl Fn(&str) -> Option<String>) -> Finding {
    const TOPIC: &str = "locale";
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| {
        let value = variable(name).filter(|it| !it.is_empty())?;
        Some((name, value))
    });
    match set {
        None => Finding::good(TOPIC, "none is set, so sessions get C.UTF-8"),
        Some((name, value)) if subprocess::has_locale(&value) => {
            Finding::good(TOPIC, format!("{value}, by {name}"))
        }
        Some((name, value)) => Finding::weaker(
            TOPIC,
            format!("{value}, by {name}, does not exist here: sessions do without it"),
            format!("generate it, or set {name} to C.UTF-8"),
        ),
    }
}

/// Whether programs know the terminal that a session has.
fn term(name: &str) -> Finding {
    const TOPIC: &str = "TERM";
    let home = std::env::var_os("HOME").map(|it| PathBuf::from(it).join(".terminfo"));
    let folders = ["/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo"].map(PathBuf::from);
    let first = &name[..1];
    let known = home.into_iter().chain(folders).find(|it| it.join(first).join(name).exists());
    match known {
        Some(folder) => Finding::good(TOPIC, format!("{name}, described in {}", folder.display())),
        None => Finding::weaker(
            TOPIC,
            format!("{name} is not described here: full-screen programs may refuse to start"),
            "install ncurses-base, or set term of the row terminal-bash",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_decides_and_what_would_help_is_said() {
        let good = Finding::good("a", "fine");
        let weaker = Finding::weaker("bcd", "so so", "do this");
        let broken = Finding::broken("e", "not at all", "do that");
        assert_eq!(
            text(&[good.clone(), weaker.clone()], true),
            "good    a    fine\nweaker  bcd  so so\n             -> do this\n\n\
             Sessions work here; 1 of these could be better.\n"
        );
        assert_eq!(
            text(std::slice::from_ref(&good), true),
            "good    a  fine\n\nSessions work here.\n"
        );
        assert!(text(&[good, weaker, broken], false).ends_with(
            "BROKEN  e    not at all\n             -> do that\n\n\
             Sessions do not work here before what is broken is mended.\n"
        ));
    }

    #[test]
    fn a_locale_that_does_not_exist_is_told() {
        let with = |name: &'static str, value: &'static str| {
            locale(move |it| (it == name).then(|| value.to_owned()))
        };
        assert_eq!(with("LANG", "C").grade, Grade::Good);
        assert_eq!(with("LANG", "").grade, Grade::Good);
        let wrong = with("LC_ALL", "tlh_KX.UTF-8");
        assert_eq!(wrong.grade, Grade::Weaker);
        assert!(wrong.found.starts_with("tlh_KX.UTF-8, by LC_ALL,"), "{}", wrong.found);
    }

    #[test]
    fn the_default_terminal_is_looked_for_where_systems_keep_it() {
        assert_eq!(term("no-such-terminal").grade, Grade::Weaker);
        assert!(term("no-such-terminal").advice.is_some());
    }
}
