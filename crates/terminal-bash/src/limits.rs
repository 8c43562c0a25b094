//! Limits of sessions: which there are, and when one is reached.
//!
//! A session that reaches a limit is ended whole, and says at which one. The kernel holds its processes
//! together to what it can, and knows when that is met. What they use is looked at besides: four times a
//! second, and more often where nothing else stops what grows fast.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use agents::AgentInstance;
use dsh_core::{ConfigError, lock, number::MAX_SAFE_INTEGER};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use subprocess::{Bounds, Capacity, Held, Met, Usage};
use terminal::TerminalError;

use crate::readiness::Moment;

/// Longest time between two looks at what a session uses.
const PERIOD: Duration = Duration::from_millis(250);
/// Shortest time between two looks: each costs some tenths of a millisecond.
const SHORTEST: Duration = Duration::from_millis(20);
const MIB: u64 = 1024 * 1024;
/// What grows no faster than this is seen before it is past its limit, unless a look comes late.
const MIB_PER_SECOND: u64 = 2048;
/// The same of processes.
const PROCESSES_PER_SECOND: u64 = 1000;

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
    /// Refuse the row where the kernel does not hold all processes of a session together to
    /// `memoryMib` and `processes`. Otherwise they are watched there.
    #[serde(skip_serializing_if = "is_false")]
    pub enforced: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's way of asking")]
fn is_false(it: &bool) -> bool {
    !*it
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
        problems.extend(self.enforcement_problem(subprocess::bounds_hold));
        problems
    }

    /// Why the limits cannot be enforced as they are to be, as `hold` tells.
    fn enforcement_problem(
        &self,
        hold: impl FnOnce(&Bounds) -> Result<(), String>,
    ) -> Option<ConfigError> {
        let bounds = self.bounds();
        if !self.enforced {
            return None;
        }
        if bounds.memory_bytes.or(bounds.processes).is_none() {
            let message =
                "there is nothing to enforce: name `memoryMib` or `processes`, or leave it out";
            return Some(ConfigError::new("limits.enforced", message));
        }
        let reason = hold(&bounds).err()?;
        let message = format!(
            "the kernel cannot hold a session to its limits here: {reason}. Leave it out to have them \
             watched, or see `dsh doctor`"
        );
        Some(ConfigError::new("limits.enforced", message))
    }

    /// What the host is asked to hold a session to.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            memory_bytes: self.memory_mib.map(|it| it.saturating_mul(MIB)),
            processes: self.processes,
            cpu: self.cpu_seconds.map(Duration::from_secs),
            required: self.enforced,
        }
    }

    /// Whether a look at the processes is of use.
    fn measure(&self) -> bool {
        self.cpu_seconds.is_some() || self.memory_mib.is_some() || self.processes.is_some()
    }

    /// The limit that is passed, in words.
    fn passed(&self, idle: Duration, usage: Usage, held: Held) -> Option<String> {
        let over =
            |limit: Option<u64>, passed: &dyn Fn(u64) -> bool| limit.filter(|it| passed(*it));
        // The sum counts twice what a fork shares, the kernel does not.
        let summed = self.memory_mib.filter(|_| !held.memory);
        if let Some(it) = over(summed, &|it| usage.memory_bytes > it * MIB) {
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

    /// A limit that the kernel knows to be met, in words.
    fn met(&self, met: Met) -> Option<String> {
        Some(match met {
            Met::Memory => format!("memory {} MiB", self.memory_mib?),
            Met::Threads(threads) => format!("threads {threads}"),
            Met::Cpu => format!("cpu {} s", self.cpu_seconds?),
        })
    }

    /// When to look again at who uses that much: the sooner, the nearer he is to a limit that nothing
    /// else keeps.
    fn period(&self, usage: Usage, held: Held) -> Duration {
        let time = |limit: Option<u64>, held: bool, used: u64, per_second: u64| {
            let room = limit.filter(|_| !held)?.saturating_sub(used);
            Some(Duration::from_millis(room.saturating_mul(1000) / per_second))
        };
        let memory = time(self.memory_mib, held.memory, usage.memory_bytes / MIB, MIB_PER_SECOND);
        let processes = time(self.processes, held.processes, usage.processes, PROCESSES_PER_SECOND);
        let soonest = memory.into_iter().chain(processes).min().unwrap_or(PERIOD);
        soonest.clamp(SHORTEST, PERIOD)
    }
}

/// Says at which limit a session was ended.
pub(crate) type Reached = Arc<OnceLock<String>>;

/// The limits of one session, and how far it is from them.
pub(crate) struct Meter {
    limits: Limits,
    held: Held,
    reached: Reached,
    /// A limit was reached, and the session is not ended for it yet.
    due_end: bool,
    /// When a call last was about the session.
    active: Moment,
    looked: Moment,
    /// Until the next look.
    period: Duration,
    /// CPU time is never less than it was: who ends takes his along.
    cpu: Duration,
}

impl Meter {
    /// Of a session whose processes the kernel holds together to what `held` says.
    pub(crate) fn new(limits: Limits, held: Held, reached: Reached, now: Moment) -> Self {
        let period = limits.period(Usage::default(), held);
        let (due_end, cpu) = (false, Duration::ZERO);
        Self { limits, held, reached, due_end, active: now, looked: now, period, cpu }
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
        let next = self.looked + self.period;
        let idle = self.limits.idle_seconds.map(|it| self.active + Duration::from_secs(it));
        let measured = self.limits.measure().then_some(next);
        // A live send puts the idle one off: not asked without a pause.
        [idle.map(|it| it.max(next)), measured].into_iter().flatten().min()
    }

    /// Whether the next look is at the processes too.
    pub(crate) fn measures(&self) -> bool {
        self.limits.measure()
    }

    /// Takes note of what is used and of what the kernel says.
    pub(crate) fn looked(&mut self, now: Moment, usage: Usage, met: Option<Met>) {
        self.looked = now;
        self.cpu = self.cpu.max(usage.cpu);
        self.period = self.limits.period(usage, self.held);
        let idle = now.saturating_sub(self.active);
        let passed = self.limits.passed(idle, Usage { cpu: self.cpu, ..usage }, self.held);
        self.reach(passed.or_else(|| self.limits.met(met?)));
    }

    /// Takes note of how the shell has ended: of what ends programs.
    pub(crate) fn exited(&mut self, met: Option<Met>) {
        let met = met.filter(|it| !matches!(it, Met::Threads(_)));
        self.reach(met.and_then(|it| self.limits.met(it)));
    }

    /// Whether the session is at a limit and to be ended; true once.
    pub(crate) fn takes_end(&mut self) -> bool {
        std::mem::take(&mut self.due_end)
    }

    fn reach(&mut self, limit: Option<String>) {
        self.due_end |= limit.is_some_and(|it| self.reached.set(it).is_ok());
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
            enforced: false,
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
            enforced: false,
        };
        let used = Usage { processes: 5, memory_bytes: 64 * MIB, cpu: 9 * second };
        for (idle, usage, passed) in [
            (59 * second, used, None),
            (60 * second, used, Some("idle 60 s")),
            (second, Usage { cpu: 10 * second, ..used }, Some("cpu 10 s")),
            (second, Usage { processes: 6, ..used }, Some("processes 5")),
            (60 * second, Usage { memory_bytes: 64 * MIB + 1, ..used }, Some("memory 64 MiB")),
        ] {
            let found = limits.passed(idle, usage, Held::default());
            assert_eq!(found.as_deref(), passed, "{idle:?} {usage:?}");
        }
        let held = Held { memory: true, processes: true };
        let much = Usage { memory_bytes: 65 * MIB, ..used };
        assert_eq!(limits.passed(second, much, held), None, "the kernel has not met it");
        let many = Usage { processes: 6, ..used };
        assert_eq!(limits.passed(second, many, held).as_deref(), Some("processes 5"));
        for (met, said) in [
            (Met::Memory, "memory 64 MiB"),
            (Met::Threads(336), "threads 336"),
            (Met::Cpu, "cpu 10 s"),
        ] {
            assert_eq!(limits.met(met).as_deref(), Some(said));
        }
    }

    #[test]
    fn the_nearer_to_a_limit_the_sooner_the_next_look() {
        let limits = |memory_mib, processes| Limits { memory_mib, processes, ..Limits::default() };
        let used =
            |mib, processes| Usage { memory_bytes: mib * MIB, processes, ..Usage::default() };
        let nothing = Held::default();
        let memory = Held { memory: true, ..nothing };
        for (limits, used, held, millis) in [
            (limits(None, None), used(5000, 5000), nothing, 250),
            (limits(Some(512), None), used(0, 1), nothing, 250),
            (limits(Some(512), None), used(256, 1), nothing, 125),
            (limits(Some(512), None), used(511, 1), nothing, 20),
            (limits(Some(512), None), used(600, 1), nothing, 20),
            (limits(Some(512), None), used(511, 1), memory, 250),
            (limits(Some(512), Some(64)), used(511, 4), memory, 60),
            (limits(Some(512), Some(64)), used(464, 4), nothing, 23),
        ] {
            let period = limits.period(used, held);
            assert_eq!(period, Duration::from_millis(millis), "{limits:?} {used:?} {held:?}");
        }
    }

    #[test]
    fn what_cannot_be_enforced_is_refused_with_the_reason() {
        let limits = |memory_mib, cpu_seconds| Limits {
            memory_mib,
            cpu_seconds,
            enforced: true,
            ..Limits::default()
        };
        let problem = |limits: Limits, hold: Result<(), &str>| {
            let hold = hold.map_err(str::to_owned);
            limits.enforcement_problem(|_| hold).map(|it| (it.path, it.message))
        };
        assert_eq!(problem(limits(Some(64), None), Ok(())), None);
        let (path, message) = problem(limits(Some(64), None), Err("no group")).unwrap();
        assert_eq!(path, "limits.enforced");
        assert!(message.contains("here: no group. Leave it out"), "{message}");
        let (_, message) = problem(limits(None, Some(5)), Ok(())).unwrap();
        assert!(message.contains("nothing to enforce"), "{message}");
        let watched = Limits { enforced: false, ..limits(Some(64), None) };
        assert_eq!(problem(watched, Err("no group")), None);
    }

    #[test]
    fn cpu_time_is_not_forgotten_with_who_used_it() {
        let second = Duration::from_secs(1);
        let limits = Limits { cpu_seconds: Some(5), ..Limits::default() };
        let mut meter = Meter::new(limits, Held::default(), Reached::default(), Moment::ZERO);
        assert_eq!(meter.due(), Some(PERIOD));
        let used = |seconds| Usage { cpu: seconds * second, ..Usage::default() };
        meter.looked(second, used(4), None);
        meter.looked(second, used(1), None);
        assert!(!meter.takes_end());
        assert_eq!(meter.due(), Some(second + PERIOD));
        meter.looked(2 * second, used(5), None);
        assert!(meter.takes_end());
        assert_eq!(meter.reached().as_deref(), Some("cpu 5 s"));
        assert_eq!(meter.due(), None);
        meter.looked(3 * second, used(6), Some(Met::Cpu));
        assert!(!meter.takes_end(), "once is enough");
    }

    #[test]
    fn a_shell_that_the_kernel_has_ended_was_at_its_limit() {
        let limits = Limits { memory_mib: Some(64), ..Limits::default() };
        for (met, reached) in [
            (None, None),
            (Some(Met::Memory), Some("memory 64 MiB")),
            // Nobody ends of that.
            (Some(Met::Threads(300)), None),
        ] {
            let held = Held::default();
            let mut meter = Meter::new(limits.clone(), held, Reached::default(), Moment::ZERO);
            meter.exited(met);
            assert_eq!(meter.reached().as_deref(), reached);
            assert_eq!(meter.takes_end(), reached.is_some());
        }
    }
}
