//! The promises of a terminal backend, checked on a backend: [`check`].
//!
//! A backend's author links the crate that registers his backend, describes it by a [`Profile`],
//! and runs the kit in a test:
//!
//! ```no_run
//! # async fn run() {
//! use testkit::conformance::{Profile, check};
//!
//! let profile = Profile {
//!     wait: Some("sleep 1000"),
//!     exit: Some(("exit 3", 3)),
//!     ..Profile::new("shell", "- name: terminal-bash", |word| format!("echo {word}"))
//! };
//! check(profile).await.assert();
//! # }
//! ```
//!
//! - Every promise is checked in a host of its own, booted in this process, with the backend behind
//!   the session service, as a tool would meet it.
//! - What a backend cannot do is a field of its profile that is left out; a promise about it is
//!   skipped, and the [`Report`] says so.
//! - A promise that hangs or panics is broken, and the others are checked all the same.
//! - The kit needs a runtime of several threads: a backend that blocks holds up one of them.

mod bench;
mod ends;
mod output;
mod sends;
mod sessions;

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use self::bench::Bench;
use crate::wait::HANG;

/// What the kit has to know of a backend. Lines are given without Enter.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The type that it registers.
    pub kind: String,
    /// The rows of a composition that mount it, besides `terminal`.
    pub rows: String,
    /// A line that shows a word on a line of its own, and then waits for the next line. The line
    /// itself, as it is echoed, is no line that has only the word.
    pub say: fn(&str) -> String,
    /// The same after a pause in silence.
    pub say_slowly: Option<fn(&str) -> String>,
    /// The same at some time after the session waits for the next line.
    pub say_later: Option<fn(&str) -> String>,
    /// A line that shows the numbers from 1 on, each on a line of its own.
    pub count: Option<fn(u64) -> String>,
    /// A line that works without output and without end, until it is interrupted.
    pub wait: Option<&'static str>,
    /// A line that ends the session by itself, and the exit status that is told then.
    pub exit: Option<(&'static str, i32)>,
    /// A line whose command fails, and the exit status that is told then.
    pub fail: Option<(&'static str, i32)>,
    /// A line that shows the working directory on a line of its own; sessions can be opened in one.
    pub directory: Option<&'static str>,
    /// A line that leaves a process of this machine behind that no hang-up ends, with this word among
    /// its arguments.
    pub leave: Option<fn(&str) -> String>,
    /// A line after which the next close fails, and the one after that does not.
    pub stubborn: Option<&'static str>,
    /// Its sessions have a process on this machine.
    pub process: bool,
    /// The foreground can be signalled.
    pub signals: bool,
    /// Its output can be searched.
    pub search: bool,
    /// Most bytes of a viewport and of a page, as `rows` configure it.
    pub max_read_bytes: Option<usize>,
    /// Most bytes that one send types, as `rows` configure it.
    pub max_input_bytes: Option<usize>,
    /// How long a promise may take before it counts as one that hangs.
    pub patience: Duration,
}

impl Profile {
    /// One of a backend that can do nothing but to say something.
    pub fn new(kind: &str, rows: &str, say: fn(&str) -> String) -> Self {
        Self {
            kind: kind.to_owned(),
            rows: rows.to_owned(),
            say,
            say_slowly: None,
            say_later: None,
            count: None,
            wait: None,
            exit: None,
            fail: None,
            directory: None,
            leave: None,
            stubborn: None,
            process: false,
            signals: false,
            search: false,
            max_read_bytes: None,
            max_input_bytes: None,
            patience: 2 * HANG,
        }
    }

    /// One whose sessions are a bash with its processes on this machine: all that can be asked of it,
    /// but for the bounds that `rows` configure.
    pub fn bash(kind: &str, rows: &str) -> Self {
        Self {
            say_slowly: Some(|word| format!("sleep 0.3; echo {word}")),
            say_later: Some(|word| format!("(sleep 0.3; echo {word}) &")),
            count: Some(|last| format!("seq {last}")),
            wait: Some("sleep 1000"),
            exit: Some(("exit 3", 3)),
            fail: Some(("(exit 4)", 4)),
            directory: Some("pwd"),
            leave: Some(|word| {
                format!(
                    "nohup setsid sh -c 'trap : TERM HUP; sleep 1000; : {word}' >/dev/null 2>&1 &"
                )
            }),
            process: true,
            signals: true,
            search: true,
            ..Self::new(kind, rows, |word| format!("echo {word}"))
        }
    }
}

/// What became of each promise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Kept ones.
    pub kept: Vec<&'static str>,
    /// Broken ones, and what was seen instead.
    pub broken: Vec<(&'static str, String)>,
    /// Those that were not checked, and what the profile lacks.
    pub skipped: Vec<(&'static str, &'static str)>,
}

impl Report {
    /// # Panics
    ///
    /// With the whole report when a promise is broken.
    #[track_caller]
    pub fn assert(&self) {
        assert!(self.broken.is_empty(), "the backend breaks what it promises\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (promise, seen) in &self.broken {
            writeln!(f, "BROKEN   {promise}")?;
            seen.lines().try_for_each(|line| writeln!(f, "           {line}"))?;
        }
        for (promise, lacks) in &self.skipped {
            writeln!(f, "skipped  {promise} (the profile has no `{lacks}`)")?;
        }
        self.kept.iter().try_for_each(|promise| writeln!(f, "kept     {promise}"))
    }
}

/// Checks every promise on the backend that `profile` describes, one after the other.
pub async fn check(profile: Profile) -> Report {
    let profile = Arc::new(profile);
    let mut report = Report::default();
    let promises = [sessions::PROMISES, sends::PROMISES, output::PROMISES, ends::PROMISES];
    for promise in promises.into_iter().flatten() {
        match promise.check(&profile).await {
            Ok(()) => report.kept.push(promise.name),
            Err(Failure::Broken(seen)) => report.broken.push((promise.name, seen)),
            Err(Failure::Lacks(field)) => report.skipped.push((promise.name, field)),
        }
    }
    report
}

/// One promise.
struct Promise {
    name: &'static str,
    check: fn(Arc<Bench>) -> Checked,
}

type Checked = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// Why a promise is not kept.
#[derive(Debug)]
enum Failure {
    Broken(String),
    /// The profile lacks this field.
    Lacks(&'static str),
}

impl Promise {
    async fn check(&self, profile: &Arc<Profile>) -> Result<(), Failure> {
        let (check, profile) = (self.check, Arc::clone(profile));
        let patience = profile.patience;
        // On a task of its own, so that neither a panic nor a hang ends the others.
        let mut task = tokio::spawn(async move {
            let bench = Arc::new(Bench::boot(profile).await?);
            let checked = check(Arc::clone(&bench)).await;
            let disposed = bench.dispose().await;
            checked.and(disposed)
        });
        let ended = tokio::time::timeout(patience, &mut task).await;
        match ended {
            Ok(Ok(checked)) => checked,
            Ok(Err(panic)) => Err(Failure::Broken(format!("panics: {panic}"))),
            Err(_) => {
                task.abort();
                Err(Failure::Broken(format!("hangs: it has not come to an end in {patience:?}")))
            }
        }
    }
}

/// Breaks the promise with a text unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($seen:tt)+) => {
        if !$holds {
            return Err($crate::conformance::Failure::Broken(format!($($seen)+)));
        }
    };
}

/// Breaks the promise unless two values are equal.
macro_rules! ensure_eq {
    ($what:expr, $seen:expr, $expected:expr) => {{
        let (seen, expected) = (&$seen, &$expected);
        ensure!(seen == expected, "{}: {seen:?} instead of {expected:?}", $what);
    }};
}

use {ensure, ensure_eq};
