//! Configuration of a shell backend. Names and defaults are the wire's.

#[doc(hidden)]
pub mod session;

use std::{path::PathBuf, time::Duration};

use dsh_core::{ConfigError, number::MAX_SAFE_INTEGER};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use subprocess::Isolation;

use crate::{dialect::ShellDialect, environment::NamePattern};

crate::session_config! {
    /// One `terminal-bash` row.
    #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(deny_unknown_fields, default, rename_all = "camelCase", remote = "Self")]
    pub struct Config {
        /// The type that `terminal_open` names.
        #[schemars(extend("pattern" = "^$|\\S"))]
        pub backend_type: String = "shell".to_owned(),
        /// Which shell's hooks are installed.
        pub shell_dialect: ShellDialect = ShellDialect::Bash,
        /// The shell; empty means the dialect's own, such as `/bin/bash`.
        pub shell_path: PathBuf = PathBuf::new(),
        /// Its arguments; empty means the dialect's own, such as `--noprofile --norc -i`.
        pub shell_args: Vec<String> = Vec::new(),
        /// Tell programs to print plainly: no pager, no colours. False leaves both as the user has
        /// them.
        pub plain_output: bool = true,
        /// Names of the host's variables that pass to sessions although they look like a secret or
        /// are denied; `*` stands for any characters.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub environment_allow: Vec<NamePattern> = Vec::new(),
        /// Names of the host's variables that do not pass to sessions, besides the secrets.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub environment_deny: Vec<NamePattern> = Vec::new(),
        /// The umask of the shell, whatever the host's is, in octal.
        pub umask: Umask = Umask::default(),
        /// Longest gap between two looks at a quiet foreground, in milliseconds.
        #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
        pub poll_interval_ms: u64 = 50,
        /// Latest time of the first look after a write, in milliseconds. Accepted for compatibility:
        /// the first look is always far sooner.
        #[schemars(range(min = 1, max = MAX_SAFE_INTEGER))]
        pub exact_probe_after_ms: u64 = 150,
        /// What keeps the processes of a session apart from all others.
        pub isolation: Isolation = Isolation::None,
    }
}

/// A umask, written as three or four octal digits such as `'022'`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^0?[0-7]{3}$"))]
pub struct Umask(u16);

impl Umask {
    /// The bits.
    pub fn mode(self) -> u16 {
        self.0
    }
}

impl Default for Umask {
    fn default() -> Self {
        Self(0o022)
    }
}

impl TryFrom<String> for Umask {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = (3..=4).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
        let mask = u16::from_str_radix(&text, 8).ok();
        mask.filter(|it| digits && *it <= 0o777)
            .map(Self)
            .ok_or_else(|| format!("a umask is from '000' to '777', in quotes, not `{text}`"))
    }
}

impl From<Umask> for String {
    fn from(mask: Umask) -> Self {
        format!("{:03o}", mask.0)
    }
}

/// As written, with every empty value replaced by what it stands for.
impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer).map(Self::resolved)
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl Config {
    /// The configuration with every empty value replaced by the default it stands for.
    #[must_use]
    pub fn resolved(mut self) -> Self {
        let default = Self::default();
        let empty = |text: &String| text.is_empty();
        if empty(&self.backend_type) {
            self.backend_type = default.backend_type;
        }
        if self.shell_path.as_os_str().is_empty() {
            self.shell_path = PathBuf::from(self.shell_dialect.default_path());
        }
        if self.shell_args.is_empty() {
            let args = self.shell_dialect.default_args();
            self.shell_args = args.iter().copied().map(str::to_owned).collect();
        }
        if empty(&self.term) {
            self.term = default.term;
        }
        self
    }

    /// What no single type shows: bounds, and bounds between values.
    pub fn problems(&self) -> Vec<ConfigError> {
        let numbers = [
            ("scrollbackLines", Some(self.scrollback_lines)),
            ("scrollbackMaxBytes", Some(self.scrollback_max_bytes)),
            ("recordMaxBytes", Some(self.record_max_bytes)),
            ("maxReadBytes", Some(self.max_read_bytes)),
            ("maxInputBytes", Some(self.max_input_bytes)),
            ("pollIntervalMs", Some(self.poll_interval_ms)),
            ("exactProbeAfterMs", Some(self.exact_probe_after_ms)),
            ("idleSilenceMs", Some(self.idle_silence_ms)),
            ("handoffGraceMs", Some(self.handoff_grace_ms)),
            ("timeoutMs", Some(self.timeout_ms)),
            ("backgroundTimeoutMs", self.background_timeout_ms),
            ("disposeGraceMs", Some(self.dispose_grace_ms)),
        ];
        let mut problems: Vec<_> = numbers
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .filter(|(_, value)| !(1..=MAX_SAFE_INTEGER).contains(value))
            .map(|(name, value)| {
                ConfigError::new(name, format!("must be an integer from 1 to 2^53-1, got {value}"))
            })
            .collect();
        if self.transcript_max_bytes > MAX_SAFE_INTEGER {
            let message =
                format!("must be an integer from 0 to 2^53-1, got {}", self.transcript_max_bytes);
            problems.push(ConfigError::new("transcriptMaxBytes", message));
        }
        if self.backend_type.trim().is_empty() && !self.backend_type.is_empty() {
            problems.push(ConfigError::new("backendType", "must not consist of blanks"));
        }
        for (key, patterns) in [
            ("environmentAllow", &self.environment_allow),
            ("environmentDeny", &self.environment_deny),
        ] {
            for (index, pattern) in patterns.iter().enumerate() {
                let of_host = (key == "environmentAllow" && pattern.is_of_host())
                    .then_some("the host's own variables (`DSH_…`) never pass");
                if let Some(message) = pattern.problem().or(of_host) {
                    problems.push(ConfigError::new(format!("{key}[{index}]"), message));
                }
            }
        }
        if self.max_read_bytes > self.scrollback_max_bytes {
            let message = format!(
                "must not be greater than scrollbackMaxBytes ({}), got {}",
                self.scrollback_max_bytes, self.max_read_bytes
            );
            problems
                .push(ConfigError::new("maxReadBytes", message).and_about("scrollbackMaxBytes"));
        }
        if self.isolation == Isolation::PidNamespace
            && let Err(reason) = subprocess::pid_namespaces_work()
        {
            problems.push(ConfigError::new("isolation", reason));
        }
        problems.extend(self.limits.problems(&subprocess::capacity()));
        problems
    }

    /// Why the shell cannot be started here. A path that begins at a session's working directory is
    /// known there alone.
    pub(crate) fn shell_problem(&self) -> Option<ConfigError> {
        let path = &self.shell_path;
        if path.is_relative() && path.components().nth(1).is_some() {
            return None;
        }
        let missing = subprocess::find_program(path).err()?;
        let message = format!("{missing}: install it, or name another shell");
        Some(ConfigError::new("shellPath", message).and_about("shellDialect"))
    }

    /// `timeoutMs`, or its background counterpart.
    pub(crate) fn bound(&self, background: bool) -> Option<Duration> {
        if background {
            self.background_timeout_ms.map(Duration::from_millis)
        } else {
            Some(Duration::from_millis(self.timeout_ms))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn empty_values_stand_for_the_defaults() {
        let config: Config = serde_json::from_str(
            r#"{"backendType":"","shellPath":"","shellArgs":[],"term":"","rows":24}"#,
        )
        .unwrap();
        assert_eq!(config.backend_type, "shell");
        assert_eq!(config.shell_path, PathBuf::from("/bin/bash"));
        assert_eq!(config.shell_args, ["--noprofile", "--norc", "-i"]);
        assert_eq!(config.term, "xterm-256color");
        assert_eq!(config.rows.get(), 24);
        assert!(config.problems().is_empty());
    }

    #[test]
    fn each_dialect_has_its_own_shell() {
        for (written, path, args) in [
            ("{}", "/bin/bash", &["--noprofile", "--norc", "-i"][..]),
            (r#"{"shellDialect":"zsh"}"#, "/usr/bin/zsh", &["-f", "-i"]),
            (r#"{"shellDialect":"fish"}"#, "/usr/bin/fish", &["--no-config", "-i"]),
            (
                r#"{"shellDialect":"zsh","shellPath":"/opt/zsh","shellArgs":["-i"]}"#,
                "/opt/zsh",
                &["-i"],
            ),
        ] {
            let config: Config = serde_json::from_str(written).unwrap();
            assert_eq!(
                (config.shell_path.as_path(), &config.shell_args[..]),
                (Path::new(path), &args.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..])
            );
        }
    }

    #[test]
    fn every_number_is_positive_and_safe() {
        let config = Config { timeout_ms: 0, idle_silence_ms: 1 << 53, ..Config::default() };
        let paths: Vec<_> = config.problems().into_iter().map(|it| it.path).collect();
        assert_eq!(paths, ["idleSilenceMs", "timeoutMs"]);
    }

    #[test]
    fn a_read_is_never_larger_than_the_scrollback() {
        let config = Config { scrollback_max_bytes: 1_000, ..Config::default() };
        let problems: Vec<_> =
            config.problems().into_iter().map(|it| (it.path, it.message)).collect();
        assert_eq!(
            problems,
            [(
                "maxReadBytes".to_owned(),
                "must not be greater than scrollbackMaxBytes (1000), got 262144".to_owned()
            )]
        );
    }
}
