//! Names of signals and back. The seam speaks in names, because numbers differ between systems.

use rustix::process::Signal;

/// The standard signals.
const NAMES: [(&str, Signal); 30] = [
    ("SIGHUP", Signal::HUP),
    ("SIGINT", Signal::INT),
    ("SIGQUIT", Signal::QUIT),
    ("SIGILL", Signal::ILL),
    ("SIGTRAP", Signal::TRAP),
    ("SIGABRT", Signal::ABORT),
    ("SIGBUS", Signal::BUS),
    ("SIGFPE", Signal::FPE),
    ("SIGKILL", Signal::KILL),
    ("SIGUSR1", Signal::USR1),
    ("SIGSEGV", Signal::SEGV),
    ("SIGUSR2", Signal::USR2),
    ("SIGPIPE", Signal::PIPE),
    ("SIGALRM", Signal::ALARM),
    ("SIGTERM", Signal::TERM),
    ("SIGCHLD", Signal::CHILD),
    ("SIGCONT", Signal::CONT),
    ("SIGSTOP", Signal::STOP),
    ("SIGTSTP", Signal::TSTP),
    ("SIGTTIN", Signal::TTIN),
    ("SIGTTOU", Signal::TTOU),
    ("SIGURG", Signal::URG),
    ("SIGXCPU", Signal::XCPU),
    ("SIGXFSZ", Signal::XFSZ),
    ("SIGVTALRM", Signal::VTALARM),
    ("SIGPROF", Signal::PROF),
    ("SIGWINCH", Signal::WINCH),
    ("SIGIO", Signal::IO),
    ("SIGPWR", Signal::POWER),
    ("SIGSYS", Signal::SYS),
];

/// The signal of this name.
pub(crate) fn by_name(name: &str) -> Option<Signal> {
    NAMES.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// Name of a signal number; a number without a name of its own stands as `SIG34`.
pub(crate) fn name_of(number: i32) -> String {
    let named = NAMES.iter().find(|it| it.1.as_raw() == number);
    named.map_or_else(|| format!("SIG{number}"), |it| it.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_belong_together() {
        for (name, signal) in NAMES {
            assert_eq!(by_name(name), Some(signal));
            assert_eq!(name_of(signal.as_raw()), name);
        }
        assert_eq!(by_name("INT"), None);
        assert_eq!(by_name("SIGNONE"), None);
        assert_eq!(name_of(40), "SIG40");
    }
}
