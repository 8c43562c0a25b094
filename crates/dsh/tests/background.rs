//! Background sends in a real bash: what they show, how they end, and what is left of them.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails it as the test would")]

use std::{path::PathBuf, sync::Arc};

use agents::Agent;
use jobs::Jobs;
use serde_json::{Value, json};
use testkit::{
    TestHost, guarded,
    leaks::{Process, alone, processes_with_env},
    wait_until,
};

// Only what is mentioned is linked.
use terminal_bash as _;
use tool_jobs as _;
use tool_terminal as _;

/// Silence makes idle what nobody can see into, soon.
const CONFIG: &str = "{ idleSilenceMs: 200, timeoutMs: 20000 }";

struct Bench {
    host: TestHost,
    agent: Arc<Agent>,
}

/// Runs `test` with one session, alone in this process, and checks that it leaves nothing.
fn bench(config: &str, test: impl AsyncFnOnce(&Bench)) {
    alone(async {
        let rows = format!(
            "- name: terminal\n- name: terminal-bash\n  config: {config}\n\
             - name: tool-terminal\n- name: jobs\n- name: tool-jobs\n"
        );
        let host = TestHost::boot(&rows).await;
        let agent = host.agent(&format!("background-{}", std::process::id()));
        let bench = Bench { host, agent };
        bench.text("terminal_open", json!({ "type": "shell" })).await;
        test(&bench).await;
        guarded("disposal", bench.host.dispose()).await.unwrap();
    });
}

impl Bench {
    /// A call that succeeds.
    async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = guarded(tool, self.host.call(&self.agent, tool, arguments.clone())).await;
        assert!(!result.is_error(), "{tool} {arguments}: {}", result.text());
        result.text()
    }

    async fn foreground(&self, text: &str) -> String {
        self.text("terminal_send", json!({ "sessionId": "pty-1", "text": text })).await
    }

    /// Starts a send; its id.
    async fn background(&self, text: &str) -> String {
        let send = json!({ "sessionId": "pty-1", "text": text, "run_in_background": true });
        let started = self.text("terminal_send", send).await;
        started.strip_prefix("started background job ").unwrap().to_owned()
    }

    async fn output(&self, id: &str) -> String {
        self.text("job_output", json!({ "job_id": id })).await
    }

    /// What it has shown since, once it has ended, or after this time.
    async fn wait(&self, id: &str, timeout_ms: u64) -> String {
        let wait = json!({ "job_id": id, "wait": true, "timeout_ms": timeout_ms });
        self.text("job_output", wait).await
    }

    /// The same of a job that still runs then, without its status.
    async fn running_output(&self, id: &str, timeout_ms: u64) -> String {
        let mut shown = self.wait(id, timeout_ms).await;
        let length = shown.strip_suffix("\n[status: running]").map(str::len);
        shown.truncate(length.unwrap_or_else(|| panic!("it has ended: {shown}")));
        if shown == "(no new output)" { String::new() } else { shown }
    }

    /// The same, once it has ended.
    async fn end(&self, id: &str) -> String {
        self.wait(id, 20_000).await
    }

    async fn kill(&self, id: &str) {
        let answer = self.text("job_kill", json!({ "job_id": id })).await;
        assert_eq!(answer, format!("requested cancellation of job {id}"));
    }

    fn label(&self, id: &str) -> String {
        self.host.service::<Jobs>().get(Some(&self.agent), id).unwrap().label
    }

    /// A path in the workspace, where the shell starts.
    fn path(&self, name: &str) -> PathBuf {
        self.agent.workspace_root().join(name)
    }

    /// What runs under this name in the session.
    fn running(&self, name: &str) -> Vec<Process> {
        let mut all = processes_with_env("DSH_SESSION_ID", self.agent.id());
        all.retain(|it| it.command == name);
        all
    }

    /// Waits until a program runs.
    async fn runs(&self, name: &str) -> Process {
        wait_until(format!("{name} runs"), || !self.running(name).is_empty()).await;
        self.running(name).remove(0)
    }

    /// The session works as if nothing had been.
    async fn is_usable(&self) {
        let shown = self.foreground("echo still $((6 * 7))").await;
        let expected = "echo still $((6 * 7))\nstill 42\ndsh> \n[exit: 0]\n[wait: stdin_read]\n[session: running]";
        assert_eq!(shown, expected);
    }
}

#[test]
fn it_runs_until_it_ends_and_nothing_it_shows_is_lost() {
    bench(CONFIG, async |bench| {
        bench.foreground("mkfifo gate").await;
        let id = bench.background("echo begun; cat gate; echo X; (exit 3)").await;
        bench.runs("cat").await;
        let mut shown = String::new();
        guarded("its first output", async {
            while !shown.ends_with("\nbegun") {
                shown.push_str(&bench.running_output(&id, 1).await);
            }
        })
        .await;
        assert_eq!(shown, "echo begun; cat gate; echo X; (exit 3)\nbegun");
        // Far longer than the silence that makes idle.
        assert_eq!(bench.running_output(&id, 600).await, "");
        let gate = bench.path("gate");
        tokio::task::spawn_blocking(move || std::fs::write(gate, "through\n").unwrap());
        let rest = bench.end(&id).await;
        assert_eq!(rest, "through\nX\ndsh> \n[exit: 3]\n[status: completed, wait: stdin_read]");
        bench.is_usable().await;
    });
}

#[test]
fn a_kill_is_a_real_interrupt() {
    bench(CONFIG, async |bench| {
        let id = bench.background("sleep 1000").await;
        bench.runs("sleep").await;
        bench.kill(&id).await;
        let end = bench.end(&id).await;
        assert!(end.ends_with("\n[exit: 130]\n[status: killed, wait: stdin_read]"), "{end}");
        assert_eq!(bench.running("sleep"), []);
        bench.is_usable().await;
        // Where the terminal makes no signals of control characters.
        let raw =
            "python3 -c \"import tty,time; tty.setraw(0); open('raw','w'); time.sleep(1000)\"";
        let id = bench.background(raw).await;
        wait_until("it is raw", || bench.path("raw").exists()).await;
        bench.kill(&id).await;
        let end = bench.end(&id).await;
        assert!(end.contains("KeyboardInterrupt"), "{end}");
        assert!(end.ends_with("[status: killed, wait: stdin_read]"), "{end}");
        assert_eq!(bench.running("python3"), []);
        bench.is_usable().await;
    });
}

#[test]
fn who_ignores_the_interrupt_is_stopping_until_something_stronger() {
    bench(CONFIG, async |bench| {
        let deaf = "python3 -c \"import signal,time; signal.signal(2, signal.SIG_IGN); open('deaf','w'); time.sleep(1000)\"";
        let id = bench.background(deaf).await;
        wait_until("it is deaf", || bench.path("deaf").exists()).await;
        let python = bench.runs("python3").await;
        bench.output(&id).await;
        bench.kill(&id).await;
        let expected = format!(
            "[stopping: python3 (pid {}) still runs; terminal_signal SIGTERM or SIGKILL is stronger]\n\
             [status: stopping]",
            python.pid
        );
        // Far longer than the silence that makes idle.
        let shown = bench.wait(&id, 600).await;
        assert!(shown.ends_with(&expected), "{shown}");
        assert_eq!(bench.running("python3"), [python]);
        let busy = json!({ "sessionId": "pty-1", "text": "ls" });
        let busy = bench.host.call(&bench.agent, "terminal_send", busy).await;
        assert_eq!(busy.error.unwrap().info.code, "SEND_ACTIVE");
        bench.text("terminal_signal", json!({ "sessionId": "pty-1", "signal": "SIGTERM" })).await;
        let end = bench.end(&id).await;
        assert!(end.ends_with("\n[exit: 143]\n[status: killed, wait: stdin_read]"), "{end}");
        assert_eq!(bench.running("python3"), []);
        bench.is_usable().await;
    });
}

#[test]
fn a_server_in_the_background_is_not_idle() {
    bench(CONFIG, async |bench| {
        let server = "python3 -c \"import socket; s=socket.create_server(('127.0.0.1',0)); open('up','w'); s.accept()\"";
        let id = bench.background(server).await;
        wait_until("it listens", || bench.path("up").exists()).await;
        let shown = bench.wait(&id, 600).await;
        assert!(shown.ends_with("[status: running]"), "{shown}");
        bench.kill(&id).await;
        let end = bench.end(&id).await;
        assert!(end.ends_with("[status: killed, wait: stdin_read]"), "{end}");
        bench.is_usable().await;
    });
}

#[test]
fn a_bound_of_its_own_ends_the_wait_and_not_the_program() {
    bench("{ backgroundTimeoutMs: 300, timeoutMs: 20000 }", async |bench| {
        let id = bench.background("sleep 1000").await;
        let end = bench.end(&id).await;
        assert!(
            end.ends_with(
                "\n[state: still running (sleep, sleeping)]\n[status: completed, wait: timeout]"
            ),
            "{end}"
        );
        assert_eq!(bench.running("sleep").len(), 1);
        bench.text("terminal_signal", json!({ "sessionId": "pty-1", "signal": "SIGINT" })).await;
        wait_until("it has ended", || bench.running("sleep").is_empty()).await;
        let shown = bench.foreground("echo still $((6 * 7))").await;
        assert!(shown.contains("\nstill 42\n"), "{shown}");
    });
}

#[test]
fn a_question_ends_it() {
    bench(CONFIG, async |bench| {
        let id = bench.background("read -p 'name? ' name").await;
        let end = bench.end(&id).await;
        assert!(end.contains("name? \n[state: waiting for input (bash)"), "{end}");
        assert!(end.ends_with("[status: completed, wait: stdin_read]"), "{end}");
        bench.foreground("me").await;
        // A program that answers its interrupt with its prompt has been killed as a job.
        bench.foreground("python3 -q").await;
        let id = bench.background("import time; time.sleep(1000)").await;
        wait_until("it sleeps", || {
            bench.running("python3").first().is_some_and(|it| {
                let wchan = std::fs::read_to_string(format!("/proc/{}/wchan", it.pid));
                wchan.is_ok_and(|it| it.contains("nanosleep"))
            })
        })
        .await;
        bench.kill(&id).await;
        let end = bench.end(&id).await;
        assert!(end.contains("KeyboardInterrupt") && end.contains("\n>>> \n"), "{end}");
        assert!(end.ends_with("[status: killed, wait: stdin_read]"), "{end}");
        bench.foreground("exit()").await;
        bench.is_usable().await;
    });
}

#[test]
fn twenty_in_a_row_each_have_their_own_output() {
    bench(CONFIG, async |bench| {
        for number in 1..=20 {
            let id = bench.background(&format!("echo number {number}")).await;
            assert_eq!(id, format!("pty-send-{number}"));
            assert_eq!(
                bench.end(&id).await,
                format!(
                    "echo number {number}\nnumber {number}\ndsh> \n[exit: 0]\n\
                     [status: completed, wait: stdin_read]"
                )
            );
            assert_eq!(bench.label(&id), format!("pty-1: echo number {number}"));
        }
        assert_eq!(bench.agent.inbox().drain(), [], "each was told by job_output");
        bench.is_usable().await;
    });
}

#[test]
fn what_one_reading_lost_is_not_held_against_the_next() {
    let small =
        "{ scrollbackLines: 100, scrollbackMaxBytes: 4096, maxReadBytes: 4096, timeoutMs: 20000 }";
    bench(small, async |bench| {
        let id = bench.background("seq 1 20000").await;
        let end = bench.end(&id).await;
        assert!(end.contains("\n20000\ndsh> \n[exit: 0]\n"), "{end}");
        assert!(end.ends_with("stdin_read]\n[output truncated]"), "{end}");
        let id = bench.background("echo hi").await;
        let expected = "echo hi\nhi\ndsh> \n[exit: 0]\n[status: completed, wait: stdin_read]";
        assert_eq!(bench.end(&id).await, expected);
    });
}

#[test]
fn a_program_that_ends_the_shell_ends_the_job() {
    bench(CONFIG, async |bench| {
        let id = bench.background("exit 7").await;
        let end = bench.end(&id).await;
        assert!(end.ends_with("[status: completed, session exited: 7]"), "{end}");
    });
}

#[test]
fn no_label_shows_what_the_terminal_did_not() {
    const SECRET: &str = "hunter2-swordfish";
    bench(CONFIG, async |bench| {
        let asked = bench.foreground("read -s -p 'Password: ' x").await;
        assert!(asked.contains("echo off"), "{asked}");
        let id = bench.background(SECRET).await;
        let hidden = "pty-1: (17 bytes, echo off)";
        assert_eq!(bench.label(&id), hidden);
        bench.end(&id).await;
        assert_eq!(bench.label(&id), hidden);
        // The terminal is asked anew: of the last send it only knows that it went on.
        let asked = bench.background("mkfifo gate; cat gate; read -s y").await;
        bench.runs("cat").await;
        assert_eq!(bench.label(&asked), "pty-1: mkfifo gate; cat gate; read -s y");
        let gate = bench.path("gate");
        tokio::task::spawn_blocking(move || std::fs::write(gate, "").unwrap());
        bench.end(&asked).await;
        let id = bench.background(SECRET).await;
        assert_eq!(bench.label(&id), hidden);
        bench.end(&id).await;
        // A secret among the lines of one text.
        let id = bench.background(&format!("read -s z\n{SECRET}")).await;
        assert!(!bench.label(&id).contains("hunter"), "{}", bench.label(&id));
        bench.end(&id).await;
        assert_eq!(bench.label(&id), "pty-1: (27 bytes, echo off)");
        let listed = bench.text("job_list", json!({})).await;
        assert!(!listed.contains("hunter"), "{listed}");
        let proof = bench
            .foreground("[ $x$y$z = $(printf 'hunter2-swordfish%.0s' 1 2 3) ] && echo same")
            .await;
        assert!(proof.contains("\nsame\n"), "{proof}");
    });
}

#[test]
fn the_end_of_the_agent_leaves_nothing() {
    bench(CONFIG, async |bench| {
        let deaf = "python3 -c \"import signal,time; [signal.signal(s, signal.SIG_IGN) for s in (1,2,15)]; open('deaf','w'); time.sleep(1000)\"";
        bench.background(deaf).await;
        wait_until("it is deaf", || bench.path("deaf").exists()).await;
        guarded("disposal", bench.host.dispose_agent(&bench.agent)).await.unwrap();
        assert_eq!(processes_with_env("DSH_SESSION_ID", bench.agent.id()), []);
    });
}
