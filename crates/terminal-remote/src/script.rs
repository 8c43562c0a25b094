//! What the far side runs: lines for a POSIX shell with `/proc`, `grep` and `sleep`.
//!
//! - Every line is a single argument of the launcher. `ssh` hands it to the user's login shell, so it
//!   is `exec sh -c '…'`, which all of them understand, without a newline and without `!`.
//! - The processes of a session are found by a variable that all of them inherit.
//! - What must be no secret is in no argument: the session's nonce is read from the terminal.

use std::fmt::Write as _;

use terminal::Signal;

/// What a session's far side has to know.
pub(crate) struct Session<'a> {
    /// The word by which it is recognised.
    pub(crate) token: &'a str,
    /// The directory to enter, or none for the one that the launcher gives.
    pub(crate) cwd: Option<&'a str>,
    /// The shell.
    pub(crate) shell: &'a str,
    /// Variables for the shell.
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// Tenths of a second that processes get to end by themselves.
    pub(crate) grace: u64,
}

/// Tenths of a second that killed processes get to be gone.
const KILLED: u64 = 30;

/// The far side of a session: a shell, and a process behind it that ends the session's processes when
/// the shell has ended or its terminal was hung up.
pub(crate) fn session(it: &Session<'_>) -> String {
    let Session { token, grace, .. } = *it;
    let mut line = format!("t={token}; p=$$; ");
    line.push_str(r#"e() { printf "\033]133;E;%s;dsh=%s\007" "$1" "$t"; exit 1; }; "#);
    if let Some(cwd) = it.cwd {
        // A relative one is one of the far side; one that begins with a dash is no option.
        let cwd = if cwd.starts_with('-') { format!("./{cwd}") } else { cwd.to_owned() };
        write!(line, "CDPATH= cd {} >/dev/null || e cwd; ", quote(&cwd)).ok();
    }
    let shell = quote(it.shell);
    write!(line, "command -v {shell} >/dev/null || e shell; ").ok();
    // No event tells of a hang-up to one who is no child of the terminal's owner.
    write!(
        line,
        r#"(trap "" HUP INT QUIT TERM TSTP; while kill -0 $p && (: </dev/tty); do sleep 1; done; {}) </dev/null >/dev/null 2>&1 & "#,
        end("$t", grace)
    )
    .ok();
    for (name, value) in it.variables {
        write!(line, "{name}={}; export {name}; ", quote(value)).ok();
    }
    line.push_str(r#"[ -n "$LC_ALL$LC_CTYPE$LANG" ] || { LC_CTYPE=C.UTF-8; export LC_CTYPE; }; "#);
    line.push_str("DSH_REMOTE=$t; export DSH_REMOTE; trap : HUP; ");
    line.push_str(r#"printf "\033]133;S;%s;dsh=%s\007" $p "$t"; IFS= read -r n; "#);
    write!(line, "{shell} --noprofile --norc -i; s=$?; ").ok();
    line.push_str(r#"printf "\033]133;X;%s;dsh=%s\007" $s "$n"; exit $s"#);
    wrapped(&line)
}

/// Signals the foreground of the terminal that process `pid` has; see [`Answer`].
pub(crate) fn signal(token: &str, pid: i32, signal: Signal) -> String {
    let name = signal.name().trim_start_matches("SIG");
    let spared = if signal == Signal::Kill { "answer shell $g; exit; " } else { ":; " };
    // The fields behind the name: state, parent, group, session, terminal, its foreground group.
    let line = format!(
        r#"{} [ -r /proc/{pid}/stat ] && grep -qsF {token} /proc/{pid}/cmdline || {{ answer gone; exit; }}; s=$(cat /proc/{pid}/stat); set -- ${{s##*) }}; g=$6; [ "$g" -gt 0 ] || {{ answer none; exit; }}; s=$(cat /proc/$g/stat 2>/dev/null); set -- ${{s##*) }}; if [ "$2" = {pid} ]; then {spared}fi; if kill -{name} -$g; then answer done $g; else answer none; fi"#,
        answer(token)
    );
    wrapped(&line)
}

/// Ends every process of a session; see [`Answer`].
pub(crate) fn close(token: &str, grace: u64) -> String {
    let line = format!(
        r#"{} [ -d /proc/$$ ] || {{ answer blind; exit; }}; {}; if [ -n "$f" ]; then answer left $(for x in $f; do x=${{x#/proc/}}; x=${{x%/*}}; echo $x:$(cat /proc/$x/comm 2>/dev/null); done); else answer done; fi"#,
        answer(token),
        end(token, grace)
    );
    wrapped(&line)
}

/// What a line of [`signal`] or [`close`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It was done; to which process group.
    Done(Option<i32>),
    /// The shell itself is in the foreground.
    Shell,
    /// There is no foreground.
    None,
    /// The session's far side is not there any more.
    Gone,
    /// The far side has no `/proc`.
    Blind,
    /// These processes are still there.
    Left(String),
}

/// Finds the answer in what the launcher printed.
pub(crate) fn read_answer(token: &str, output: &str) -> Option<Answer> {
    let start = format!("dsh={token}:");
    let said = output.lines().rev().find_map(|line| line.trim_end().strip_prefix(&start))?;
    let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
    Some(match word {
        "done" => Answer::Done(rest.trim().parse().ok()),
        "shell" => Answer::Shell,
        "none" => Answer::None,
        "gone" => Answer::Gone,
        "blind" => Answer::Blind,
        "left" => Answer::Left(rest.trim().to_owned()),
        _ => return None,
    })
}

fn answer(token: &str) -> String {
    format!(r#"answer() {{ printf "\ndsh={token}:%s\n" "$*"; }};"#)
}

/// Ends whoever inherited the token: TERM, the grace, KILL; and a hang-up, the end of interactive shells,
/// which may lose the first one. `$f` has the files of those that are left.
fn end(token: &str, grace: u64) -> String {
    let last = grace + KILLED;
    format!(
        r#"i=0; while f=$(grep -lsF "DSH_REMOTE={token}" /proc/[0-9]*/environ 2>/dev/null); [ -n "$f" ] && [ $i -lt {last} ]; do s=0; [ $i -eq 0 ] && s=TERM; [ $i -eq 1 -o $i -eq 5 ] && s=HUP; [ $i -ge {grace} ] && s=KILL; for x in $f; do x=${{x#/proc/}}; kill -s $s ${{x%/*}} 2>/dev/null; done; sleep 0.1 2>/dev/null || sleep 1; i=$((i+1)); done"#
    )
}

fn wrapped(line: &str) -> String {
    format!("exec sh -c {}", quote(line))
}

/// A word for any shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        assert_eq!(quote("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn lines_are_single_lines_without_history() {
        let variables = [("TERM", "dumb"), ("PS1", "")];
        let it = Session {
            token: "t0",
            cwd: Some("-odd'dir"),
            shell: "bash",
            variables: &variables,
            grace: 5,
        };
        for line in [session(&it), signal("t0", 7, Signal::Kill), close("t0", 5)] {
            assert!(!line.contains(['\n', '!']), "{line}");
        }
    }

    #[test]
    fn answers() {
        let read = |output: &str| read_answer("t0", output);
        assert_eq!(read("banner\r\n\r\ndsh=t0:done 47\r\n"), Some(Answer::Done(Some(47))));
        assert_eq!(read("\ndsh=t0:done\n"), Some(Answer::Done(None)));
        assert_eq!(read("\ndsh=t0:left 7:cat 8:sh\n"), Some(Answer::Left("7:cat 8:sh".to_owned())));
        assert_eq!(read("\ndsh=t1:done\n"), None);
        assert_eq!(read("Permission denied\n"), None);
    }
}
