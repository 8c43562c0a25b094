//! The mark every process of a session inherits, by which one is still known when nothing else
//! connects it with the session any more.
//!
//! A process leaves its session (`setsid`) and its parents (double fork) in one line of shell.
//! Two inherited things stay: a variable in the environment, and a resource limit. The limit on
//! unblocked real-time CPU time is a number nobody uses, has no effect at the values chosen here
//! (tens of thousands of years), can only be lowered without privilege, survives `env -i` and is
//! readable for processes of every user, and of the dead that were not collected yet.
//!
//! All marks of one host share their upper half, by which the host knows its own.

use std::sync::OnceLock;

use super::procfs::Proc;

/// Name of the variable.
pub(crate) const VARIABLE: &str = "DSH_PROCESS_MARK";

/// What all marks of one host have in common: their upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostMark(u32);

/// That of this process.
static OWN: OnceLock<HostMark> = OnceLock::new();

impl HostMark {
    /// That of this process, drawn at the first call.
    pub(crate) fn own() -> Result<Self, getrandom::Error> {
        if let Some(own) = OWN.get() {
            return Ok(*own);
        }
        // The top bits keep the limit far above any real one and below "unlimited".
        let drawn = Self(1 << 30 | getrandom::u32()? >> 2);
        Ok(*OWN.get_or_init(|| drawn))
    }

    /// That of this process, if one was drawn.
    pub(crate) fn drawn() -> Option<Self> {
        OWN.get().copied()
    }

    /// Whether process `pid`, which may be dead, carries a mark of any session of this host.
    pub(crate) fn is_on(self, proc: &Proc, pid: i32) -> bool {
        Mark::on(proc, pid).any(|it| it.host() == self)
    }

    /// As it stands in a record.
    pub(crate) fn text(self) -> String {
        format!("{:08x}", self.0)
    }

    /// From a record; none for what no host has drawn.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let value = u32::from_str_radix(text, 16).ok()?;
        (text.len() == 8 && value >> 30 == 1).then_some(Self(value))
    }
}

/// What marks the processes of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// A new random mark.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let HostMark(host) = HostMark::own()?;
        Ok(Self(u64::from(host) << 32 | u64::from(getrandom::u32()?)))
    }

    fn host(self) -> HostMark {
        HostMark((self.0 >> 32) as u32)
    }

    /// The value of [`VARIABLE`].
    pub(crate) fn text(self) -> String {
        format!("{:016x}", self.0)
    }

    /// The limit, in microseconds.
    pub(crate) fn rttime(self) -> u64 {
        self.0
    }

    /// Whether process `pid` carries the mark; false where that cannot be seen.
    pub(crate) fn is_on(self, proc: &Proc, pid: i32) -> bool {
        Self::on(proc, pid).any(|it| it == self)
    }

    /// What `pid` carries at the places of marks.
    fn on(proc: &Proc, pid: i32) -> impl Iterator<Item = Self> {
        let read = move |what| proc.read_all(format_args!("{pid}/{what}")).unwrap_or_default();
        let environment = std::iter::once_with(move || in_environment(&read("environ"))).flatten();
        in_limits(&read("limits")).into_iter().chain(environment)
    }
}

/// The soft and the hard limit on unblocked real-time CPU time in a `/proc/PID/limits`.
fn in_limits(limits: &[u8]) -> Vec<Mark> {
    let line = limits.split(|&b| b == b'\n').find(|it| it.starts_with(b"Max realtime timeout"));
    let words = line.unwrap_or_default().split(u8::is_ascii_whitespace);
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok()).map(Mark).collect()
}

/// The value of [`VARIABLE`] in a `/proc/PID/environ`.
fn in_environment(environ: &[u8]) -> Option<Mark> {
    let value = environ
        .split(|&b| b == 0)
        .find_map(|it| it.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    u64::from_str_radix(std::str::from_utf8(value).ok()?, 16).ok().map(Mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_its_own_signs_only() {
        let mark = Mark(1 << 62 | 0xabc);
        let limits = b"Limit  Soft Limit  Hard Limit  Units\n\
            Max realtime timeout      4611686018427390652  4611686018427390652  us\n";
        assert_eq!(in_limits(limits), [mark; 2]);
        assert_eq!(in_limits(b"Max cpu time 4611686018427390652 unlimited seconds\n"), []);
        let environ = format!("A=1\0{VARIABLE}={}\0B=2\0", mark.text());
        assert_eq!(in_environment(environ.as_bytes()), Some(mark));
        assert_eq!(in_environment(b"XDSH_PROCESS_MARK=4000000000000abc\0"), None);
        assert_eq!(in_environment(b"DSH_PROCESS_MARK=\0"), None);
        assert_eq!(in_environment(b""), None);
        let host = HostMark(1 << 30 | 5);
        assert_eq!(HostMark::parse(&host.text()), Some(host));
        assert_eq!(Mark(u64::from(host.0) << 32 | 7).host(), host);
        for text in ["", "4000000", "00000005", "+0000005", "400000005"] {
            assert_eq!(HostMark::parse(text), None, "{text}");
        }
    }
}
