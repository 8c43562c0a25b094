//! A session whose own task fails.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use dsh_core::{Ctx, Deps, Plugin, Provided, async_trait, plugin::NoConfig};
use subprocess::{
    Depth, Event, Evidence, ExitStatus, LineSetting, LocalHost, Modes, SignalError, SpawnError,
    Subprocess, TerminalHost, TerminalProcess, TerminalSize, TerminalSpec, TerminateError,
};
use terminal::{ReadRequest, SessionStatus, Signal, TerminalError};
use testkit::{
    host::TestHost,
    leaks::{alone, processes_with_env},
    wait::wait_until,
};

use crate::shell::{Bench, assert_prompt};

/// The task of a session that shows this fails.
const FAULT: &[u8] = b"fault-now";

struct BrittlePlugin;

#[async_trait]
impl Plugin for BrittlePlugin {
    const NAME: &'static str = "brittle";
    type Config = NoConfig;
    type Inject = ();
    type Provide = Subprocess;

    async fn setup(_: &Ctx, (): Deps<Self>, _: NoConfig) -> anyhow::Result<Provided<Self>> {
        Ok(Arc::new(BrittleHost(LocalHost::new())))
    }
}

dsh_core::register_plugin!(BrittlePlugin);

struct BrittleHost(LocalHost);

#[async_trait]
impl TerminalHost for BrittleHost {
    async fn spawn(&self, spec: TerminalSpec) -> Result<Box<dyn TerminalProcess>, SpawnError> {
        Ok(Box::new(Brittle(self.0.spawn(spec).await?)))
    }
}

struct Brittle(Box<dyn TerminalProcess>);

fn fail_at_the_fault(output: &[u8]) {
    assert!(!output.windows(FAULT.len()).any(|it| it == FAULT), "a fault of the host's own");
}

#[async_trait]
impl TerminalProcess for Brittle {
    async fn next(&mut self, deadline: Option<Instant>, output: &mut Vec<u8>) -> Event {
        let event = self.0.next(deadline, output).await;
        fail_at_the_fault(output);
        event
    }
    fn drain(&mut self, output: &mut Vec<u8>) -> bool {
        let any = self.0.drain(output);
        fail_at_the_fault(output);
        any
    }

    fn pid(&self) -> i32 {
        self.0.pid()
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }
    fn unwritten(&self) -> usize {
        self.0.unwritten()
    }
    fn flush_input(&mut self) -> u64 {
        self.0.flush_input()
    }
    fn modes(&self) -> Option<Modes> {
        self.0.modes()
    }
    fn changed_settings(&self) -> Vec<LineSetting> {
        self.0.changed_settings()
    }
    fn restore_settings(&mut self) -> Vec<LineSetting> {
        self.0.restore_settings()
    }
    async fn probe(&mut self, depth: Depth) -> Evidence {
        self.0.probe(depth).await
    }
    fn rests(&mut self) -> bool {
        self.0.rests()
    }
    fn unread_bytes(&self) -> Option<u64> {
        self.0.unread_bytes()
    }
    fn signal_foreground(&mut self, signal: &str, spare_leader: bool) -> Result<i32, SignalError> {
        self.0.signal_foreground(signal, spare_leader)
    }
    fn exit_status(&self) -> Option<ExitStatus> {
        self.0.exit_status()
    }
    fn is_stopped(&self, group: i32) -> bool {
        self.0.is_stopped(group)
    }
    fn has_loaded(&self, pid: i32, name: &str) -> Option<bool> {
        self.0.has_loaded(pid, name)
    }
    fn cwd(&self) -> Option<PathBuf> {
        self.0.cwd()
    }
    fn resize(&mut self, size: TerminalSize) -> std::io::Result<()> {
        self.0.resize(size)
    }
    async fn terminate(
        &mut self,
        grace: Duration,
        output: &mut Vec<u8>,
    ) -> Result<(), TerminateError> {
        self.0.terminate(grace, output).await
    }
}

#[test]
fn a_task_that_fails_takes_its_session_along_and_nothing_else() {
    alone(async {
        let rows = "- name: brittle\n- name: terminal\n- name: terminal-bash\n";
        let host = TestHost::boot(rows).await;
        let agent = host.agent(&format!("agent-{}", std::process::id()));
        let bench = Bench { host, agent };
        let (failing, neighbour) = (bench.open().await, bench.open().await);
        assert_prompt(&failing.send("setsid -f sleep 1000").await, Some(0));
        let gate = neighbour.gate();
        let unharmed = neighbour.start("cat gate; echo unharmed", true).unwrap();
        neighbour.in_front("cat").await;

        let error = failing.start("printf 'fault-%s\\n' now", true).unwrap().done().await;
        let is_told = |error: TerminalError| {
            assert_eq!(error.code(), "BACKEND_FAILED", "{error}");
            let says = format!("the host's own task for terminal session {} failed", failing.id);
            assert!(error.to_string().starts_with(&says), "{error}");
        };
        is_told(error.unwrap_err());
        // What was killed without a wait is gone in a moment.
        wait_until("its processes are gone", || {
            let of_session = processes_with_env("DSH_PTY_SESSION_ID", &failing.id);
            let of_agent = processes_with_env("DSH_SESSION_ID", bench.agent.id());
            !of_session.iter().any(|it| of_agent.contains(it))
        })
        .await;
        let gone = TerminalError::SessionExited { id: failing.id.clone() };
        assert_eq!(failing.start("true", true).map(|_| ()), Err(gone.clone()));
        assert_eq!(failing.signal(Signal::Interrupt).await, Err(gone));
        let read = ReadRequest::newest(0, 1);
        is_told(bench.terminals().read(&bench.agent, &failing.id, read).await.unwrap_err());
        let listed = bench.terminals().list(&bench.agent);
        let exited = SessionStatus::Exited { exit_code: None, signal: None };
        let statuses: Vec<_> = listed.into_iter().map(|it| it.status).collect();
        assert_eq!(statuses, [exited, SessionStatus::Running]);
        // That is reported once, and then there is no more.
        let reported = failing.close().await.unwrap_err();
        assert!(reported.to_string().contains("a fault of the host's own"), "{reported}");
        assert_eq!(failing.close().await, Ok(true));

        gate.open().await;
        let unharmed = unharmed.done().await.unwrap();
        assert_prompt(&unharmed, Some(0));
        assert!(unharmed.viewport.contains("\nunharmed\n"), "{unharmed:?}");
        assert_eq!(neighbour.close().await, Ok(true));
        bench.host.dispose().await.unwrap();
    });
}
