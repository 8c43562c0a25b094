//! Configuration of a remote shell backend.

use std::path::{Path, PathBuf};

use dsh_core::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use terminal_bash::environment::NamePattern;

terminal_bash::session_config! {
    /// One `terminal-remote` row. Keys that `terminal-bash` has, too, mean the same here.
    #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(deny_unknown_fields, default, rename_all = "camelCase")]
    pub struct Config {
        /// The type that `terminal_open` names.
        #[schemars(extend("pattern" = "\\S"))]
        pub backend_type: String = "remote".to_owned(),
        /// The launcher with its arguments, such as `[ssh, -tt, host]`. It gets one more argument, a
        /// line for a POSIX shell that it is to run on the far side, on a terminal.
        #[schemars(length(min = 1), extend("prefixItems" = [{ "type": "string", "minLength": 1 }]))]
        pub argv: Vec<String> = Vec::new(),
        /// The same without a terminal and without a question, such as
        /// `[ssh, -o, BatchMode=yes, host]`. Without it nothing can be signalled, and a close does
        /// not verify that the processes on the far side are gone.
        #[schemars(extend("prefixItems" = [{ "type": "string", "minLength": 1 }]))]
        pub control_argv: Vec<String> = Vec::new(),
        /// The shell on the far side, bash 4.4 or newer; a name is looked up there.
        #[schemars(length(min = 1))]
        pub shell_path: String = "bash".to_owned(),
        /// Names of the host's variables that pass to the launcher although they look like a secret or
        /// are denied; `*` stands for any characters.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub environment_allow: Vec<NamePattern> = Vec::new(),
        /// Names of the host's variables that do not pass to the launcher, besides the secrets.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub environment_deny: Vec<NamePattern> = Vec::new(),
    }
}

impl Config {
    /// The engine's own, for a shell on the far side.
    pub(crate) fn engine(&self) -> terminal_bash::Config {
        let own = terminal_bash::Config {
            backend_type: self.backend_type.clone(),
            shell_path: PathBuf::from(&self.shell_path),
            environment_allow: self.environment_allow.clone(),
            environment_deny: self.environment_deny.clone(),
            ..terminal_bash::Config::default()
        };
        self.on_engine(own).resolved()
    }

    /// What no single type shows: bounds, and what must not be empty.
    pub fn problems(&self) -> Vec<ConfigError> {
        let mut problems = self.engine().problems();
        let mut wrong = |path: &str, message: &str| problems.push(ConfigError::new(path, message));
        match self.argv.first() {
            None => wrong("argv", "must name a launcher, such as `[ssh, -tt, host]`"),
            Some(program) if program.is_empty() => {
                wrong("argv", "must not begin with an empty name");
            }
            Some(_) => {}
        }
        if self.control_argv.first().is_some_and(String::is_empty) {
            wrong("controlArgv", "must not begin with an empty name");
        }
        if self.backend_type.is_empty() {
            wrong("backendType", "must not be empty");
        }
        if self.shell_path.is_empty() {
            wrong("shellPath", "must not be empty");
        }
        for (path, limit) in [
            ("limits.cpuSeconds", self.limits.cpu_seconds),
            ("limits.memoryMib", self.limits.memory_mib),
            ("limits.processes", self.limits.processes),
        ] {
            if limit.is_some() {
                wrong(path, "what runs on the far side cannot be measured: leave it out");
            }
        }
        if self.limits.enforced {
            problems.retain(|it| it.path != "limits.enforced");
            let message = "the far side has a kernel of its own: leave it out";
            problems.push(ConfigError::new("limits.enforced", message));
        }
        problems
    }

    /// Why a launcher cannot be started here.
    pub(crate) fn launcher_problems(&self) -> impl Iterator<Item = ConfigError> {
        [("argv", &self.argv), ("controlArgv", &self.control_argv)].into_iter().filter_map(
            |(path, argv)| {
                let name = argv.first().filter(|it| !it.is_empty())?;
                let missing = subprocess::find_program(Path::new(name)).err()?;
                Some(ConfigError::new(path, format!("{missing}: {NEXT}")))
            },
        )
    }
}

/// What to do where a launcher cannot be started.
pub(crate) const NEXT: &str = "install it, or give its path in the row of this backend";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_has_to_be_named() {
        let paths = |config: Config| -> Vec<String> {
            config.problems().into_iter().map(|it| it.path).collect()
        };
        let argv = vec!["ssh".to_owned(), "host".to_owned()];
        assert_eq!(paths(Config::default()), ["argv"]);
        assert!(paths(Config { argv: argv.clone(), ..Config::default() }).is_empty());
        let config = Config {
            argv,
            control_argv: vec![String::new()],
            shell_path: String::new(),
            timeout_ms: 0,
            ..Config::default()
        };
        assert_eq!(paths(config), ["timeoutMs", "controlArgv", "shellPath"]);
    }
}
