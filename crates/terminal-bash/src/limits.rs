//! Limits of sessions: which there are, and when one is reached.
//!
//! A session that reaches a limit is ended whole, and says at which one. What its processes use is
//! looked at four times a second, so that what grows fast is past its limit by then.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use agents::AgentInstance;
use dsh_core::{ConfigError, lock, number::MAX_SAFE_INTEGER};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use subprocess::{Capacity, Usage};
use terminal::TerminalError;

use crate::readiness::Moment;

/// Between two looks at what a session uses.
const PERIOD: Duration = Duration::from_millis(250);
const MIB: u64 = 1024 * 1024;

/// The limits of a `terminal-bash` row; none that is not named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Limits {
    /// Most sessions that one agent has of this type at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub sessions: Option<u64>,
    /// Longest time without a call about a session while no send of it is live, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub idle_seconds: Option<u64>,
    /// Most CPU time of all processes of a session together, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cpu_seconds: Option<u64>,
    /// Most memory of all processes of a session together, in MiB: what is resident and not shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub memory_mib: Option<u64>,
    /// Most processes of a session at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub processes: Option<u64>,
}

impl Limits {
    /// Limits that mean nothing: 0, or more than there is.
    pub(crate) fn problems(&self, system: &Capacity) -> Vec<ConfigError> {
        let safe = Some(MAX_SAFE_INTEGER);
        let numbers = [
            ("limits.sessions", self.sessions, system.terminals, "pseudo-terminals"),
            ("limits.idleSeconds", self.idle_seconds, safe, "seconds"),
            ("limits.cpuSeconds", self.cpu_seconds, safe, "seconds"),
            ("limits.memoryMib", self.memory_mib, system.memory_bytes.map(|it| it / MIB), "MiB"),
            ("limits.processes", self.processes, system.processes, "processes"),
        ];
        let mut problems = Vec::new();
        for (name, limit, most, unit) in numbers {
            let most = most.unwrap_or(MAX_SAFE_INTEGER);
            if let Some(limit) = limit
                && !(1..=most).contains(&limit)
            {
                let message = format!(
                    "must be from 1 to {most}, which is what this system has in {unit}, got {limit}: \
                     leave it out for no limit"
                );
                problems.push(ConfigError::new(name, message));
            }
        }
        problems
    }

    /// Whether a look at the processes is of use.
    fn measure(&self) -> bool {
        self.cpu_seconds.is_some() || self.memory_mib.is_some() || self.processes.is_some()
    }

    /// The limit that is passed, in words.
    fn passed(&self, idle: Duration, usage: Usage) -> Option<String> {
        let over =
            |limit: Option<u64>, passed: &dyn Fn(u64) -> bool| limit.filter(|it| passed(*it));
        if let Some(it) = over(self.memory_mib, &|it| usage.memory_bytes > it * MIB) {
            return Some(format!("memory {it} MiB"));
        }
        if let Some(it) = over(self.processes, &|it| usage.processes > it) {
            return Some(format!("processes {it}"));
        }
        if let Some(it) = over(self.cpu_seconds, &|it| usage.cpu >= Duration::from_secs(it)) {
            return Some(format!("cpu {it} s"));
        }
        let it = over(self.idle_seconds, &|it| idle >= Duration::from_secs(it))?;
        Some(format!("idle {it} s"))
    }
}

/// Says at which limit a session was ended.
pub(crate) type Reached = Arc<OnceLock<String>>;

/// The limits of one session, and how far it is from them.
pub(crate) struct Meter {
    limits: Limits,
    reached: Reached,
    /// When a call last was about the session.
    active: Moment,
    looked: Moment,
    /// CPU time is never less than it was: who ends takes his along.
    cpu: Duration,
}

impl Meter {
    pub(crate) fn new(limits: Limits, reached: Reached, now: Moment) -> Self {
        Self { limits, reached, active: now, looked: now, cpu: Duration::ZERO }
    }

    /// The limit at which the session was ended.
    pub(crate) fn reached(&self) -> Option<String> {
        self.reached.get().cloned()
    }

    /// Somebody uses the session.
    pub(crate) fn used(&mut self, now: Moment) {
        self.active = now;
    }

    /// When the next look is due; none where there is nothing to look for.
    pub(crate) fn due(&self) -> Option<Moment> {
        if self.reached.get().is_some() {
            return None;
        }
        let idle = self.limits.idle_seconds.map(|it| self.active + Duration::from_secs(it));
        let measured = self.limits.measure().then_some(self.looked + PERIOD);
        // A live send puts the idle one off: not asked without a pause.
        [idle.map(|it| it.max(self.looked + PERIOD)), measured].into_iter().flatten().min()
    }

    /// Whether the next look is at the processes too.
    pub(crate) fn measures(&self) -> bool {
        self.limits.measure()
    }

    /// Takes note of what is used; true if the session is at a limit and to be ended.
    pub(crate) fn looked(&mut self, now: Moment, usage: Usage) -> bool {
        self.looked = now;
        self.cpu = self.cpu.max(usage.cpu);
        let idle = now.saturating_sub(self.active);
        let passed = self.limits.passed(idle, Usage { cpu: self.cpu, ..usage });
        passed.is_some_and(|it| self.reached.set(it).is_ok())
    }
}

/// How many sessions each agent has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(Arc<Mutex<BTreeMap<AgentInstance, u64>>>);

/// One session's place; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct PlaceTaken {
    places: Places,
    owner: AgentInstance,
}

impl Places {
    /// Takes a place, if there is one.
    pub(crate) fn take(
        &self,
        owner: AgentInstance,
        limits: &Limits,
    ) -> Result<PlaceTaken, TerminalError> {
        let mut places = lock(&self.0);
        let taken = places.entry(owner).or_default();
        if let Some(limit) = limits.sessions
            && *taken >= limit
        {
            return Err(TerminalError::TooManySessions { limit });
        }
        *taken += 1;
        Ok(PlaceTaken { places: self.clone(), owner })
    }
}

impl Drop for PlaceTaken {
    fn drop(&mut self) {
        let mut places = lock(&self.places.0);
        if let Some(taken) = places.get_mut(&self.owner) {
            *taken -= 1;
            if *taken == 0 {
                places.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_within_what_there_is() {
        let system =
            Capacity { memory_bytes: Some(1000 * MIB), processes: Some(500), terminals: None };
        let limits = Limits {
            sessions: Some(0),
            idle_seconds: Some(0),
            cpu_seconds: Some(1),
            memory_mib: Some(1001),
            processes: Some(501),
        };
        let problems: Vec<_> =
            limits.problems(&system).into_iter().map(|it| (it.path, it.message)).collect();
        let paths: Vec<_> = problems.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(
            paths,
            ["limits.sessions", "limits.idleSeconds", "limits.memoryMib", "limits.processes"]
        );
        assert_eq!(
            problems[2].1,
            "must be from 1 to 1000, which is what this system has in MiB, got 1001: leave it out \
             for no limit"
        );
        assert_eq!(Limits::default().problems(&system).len(), 0);
    }

    #[test]
    fn the_first_limit_that_is_passed_is_named() {
        let second = Duration::from_secs(1);
        let limits = Limits {
            sessions: None,
            idle_seconds: Some(60),
            cpu_seconds: Some(10),
            memory_mib: Some(64),
            processes: Some(5),
        };
        let used = Usage { processes: 5, memory_bytes: 64 * MIB, cpu: 9 * second };
        for (idle, usage, passed) in [
            (59 * second, used, None),
            (60 * second, used, Some("idle 60 s")),
            (second, Usage { cpu: 10 * second, ..used }, Some("cpu 10 s")),
            (second, Usage { processes: 6, ..used }, Some("processes 5")),
            (60 * second, Usage { memory_bytes: 64 * MIB + 1, ..used }, Some("memory 64 MiB")),
        ] {
            assert_eq!(limits.passed(idle, usage).as_deref(), passed, "{idle:?} {usage:?}");
        }
    }

    #[test]
    fn cpu_time_is_not_forgotten_with_who_used_it() {
        let second = Duration::from_secs(1);
        let limits = Limits { cpu_seconds: Some(5), ..Limits::default() };
        let mut meter = Meter::new(limits, Reached::default(), Moment::ZERO);
        assert_eq!(meter.due(), Some(PERIOD));
        let used = |seconds| Usage { cpu: seconds * second, ..Usage::default() };
        assert!(!meter.looked(second, used(4)));
        assert!(!meter.looked(second, used(1)));
        assert_eq!(meter.due(), Some(second + PERIOD));
        assert!(meter.looked(2 * second, used(5)));
        assert_eq!(meter.reached().as_deref(), Some("cpu 5 s"));
        assert_eq!(meter.due(), None);
        assert!(!meter.looked(3 * second, used(6)), "once is enough");
    }
}
