//! One session's life: random things, each checked.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use agents::Agent;
use anyhow::{Context as _, bail, ensure};
use dsh_core::{Cancel, lock};
use serde_json::{Value, json};
use testkit::{host::TestHost, leaks::processes_with_env, wait_until};
use tools::ToolResult;

use super::reply::{MARK, Reply, lines};

/// Longest pause between two things.
const LONGEST_PAUSE_MS: u64 = 150;

/// Lines that can be read back at any moment: `scrollbackLines`.
const RETAINED_LINES: u64 = 2000;

/// An agent, and which sessions its actors have open.
pub(crate) struct Stage {
    pub(crate) host: Arc<TestHost>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) open: Mutex<BTreeSet<String>>,
}

impl Stage {
    /// Has the agent call something, after which it holds what it keeps until its end, such as its log.
    pub(crate) async fn begin(&self) {
        self.call("terminal_list", json!({})).await;
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.host.call(&self.agent, tool, arguments).await
    }
}

pub(crate) struct Actor {
    number: usize,
    random: fastrand::Rng,
    stage: Arc<Stage>,
    /// Another agent, whose sessions are none of this one's business.
    stranger: Arc<Stage>,
    /// The session, while there is one.
    id: Option<String>,
    /// Words so far.
    words: usize,
}

impl Actor {
    pub(crate) fn new(number: usize, seed: u64, stage: Arc<Stage>, stranger: Arc<Stage>) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { number, random, stage, stranger, id: None, words: 0 }
    }

    /// For messages.
    pub(crate) fn name(&self) -> String {
        format!("actor {}, {}", self.number, self.id.as_deref().unwrap_or("no session"))
    }

    /// Begins all words of this actor.
    fn mark(&self) -> String {
        format!("{MARK}{}~", self.number)
    }

    /// A word that was never printed before.
    fn word(&mut self) -> String {
        self.words += 1;
        format!("{}{}", self.mark(), self.words)
    }

    /// A file that programs of this actor report in.
    fn report(&self) -> PathBuf {
        self.stage.host.workspace().join(format!("report-{}", self.number))
    }

    /// Does one thing; its name, and what was broken.
    pub(crate) async fn step(&mut self) -> (&'static str, anyhow::Result<()>) {
        let pause = Duration::from_millis(self.random.u64(..LONGEST_PAUSE_MS));
        tokio::time::sleep(pause).await;
        if self.id.is_none() {
            return ("open", self.open().await);
        }
        match self.random.u8(..100) {
            0..20 => ("command with a status", self.command().await),
            20..32 => ("command that takes a while", self.slow_command().await),
            32..42 => ("python", self.python().await),
            42..50 => ("question", self.question().await),
            50..56 => ("several lines", self.several_lines().await),
            56..62 => ("signal", self.signal().await),
            62..67 => ("cancelled call", self.cancelled().await),
            67..75 => ("background send", self.background().await),
            75..78 => ("killed job", self.killed_job().await),
            78..83 => ("much output, read by pages", self.much_output().await),
            83..88 => ("list", self.list().await),
            88..91 => ("another agent's session", self.foreign().await),
            91..94 => ("end of the shell", self.shell_ends().await),
            _ => ("close with leftovers", self.close_with_leftovers().await),
        }
    }

    /// Closes the session, if there is one.
    pub(crate) async fn leave(&mut self) -> anyhow::Result<()> {
        if self.id.is_some() { self.close().await } else { Ok(()) }
    }

    async fn send(&self, text: &str) -> anyhow::Result<Reply> {
        let send = json!({ "sessionId": self.id, "text": text });
        Reply::of(self.stage.call("terminal_send", send).await, &self.mark())
    }

    async fn open(&mut self) -> anyhow::Result<()> {
        let result = self.stage.call("terminal_open", json!({ "type": "shell" })).await;
        let opened = Reply::of(result, &self.mark())?;
        let id = opened.text.split_whitespace().nth(3).context("no id")?.to_owned();
        ensure!(opened.text.ends_with("[type: shell]\ndsh> "), "{}", opened.end());
        ensure!(lock(&self.stage.open).insert(id.clone()), "{id} is open already");
        self.id = Some(id);
        Ok(())
    }

    async fn close(&mut self) -> anyhow::Result<()> {
        let id = self.id.take().context("no session")?;
        lock(&self.stage.open).remove(&id);
        let result = self.stage.call("terminal_close", json!({ "sessionId": id })).await;
        let closed = Reply::of(result, &self.mark())?;
        ensure!(closed.text == format!("closed terminal session {id}"), "{}", closed.text);
        // No waiting: it is true the moment that the close returns.
        let left: Vec<_> = processes_with_env("DSH_PTY_SESSION_ID", &id)
            .into_iter()
            .filter(|it| {
                let environment = fs::read(format!("/proc/{}/environ", it.pid)).unwrap_or_default();
                let ours = format!("DSH_SESSION_ID={}", self.stage.agent.id());
                environment.split(|byte| *byte == 0).any(|entry| entry == ours.as_bytes())
            })
            .collect();
        ensure!(left.is_empty(), "outlived the close of {id}: {left:?}");
        let again = self.stage.call("terminal_close", json!({ "sessionId": id })).await;
        let unknown = format!("Error: unknown terminal session {id}");
        ensure!(again.text() == unknown, "a second close: {}", again.text());
        Ok(())
    }

    async fn command(&mut self) -> anyhow::Result<()> {
        let (word, status) = (self.word(), self.random.i32(0..100));
        let reply = self.send(&format!("echo {word}; (exit {status})")).await?;
        let shown = reply.at_prompt(status)?;
        ensure!(lines(shown, &word) == 1, "not once {word}: {}", reply.end());
        ensure!(reply.text.starts_with("echo "), "not from its echo on: {}", reply.end());
        Ok(())
    }

    async fn slow_command(&mut self) -> anyhow::Result<()> {
        let word = self.word();
        let nap = f64::from(self.random.u32(10..400)) / 1000.0;
        let report = self.report();
        let nap = match self.random.u8(..4) {
            0 => format!("sleep {nap}"),
            1 => format!("(sleep {nap}; echo) | cat"),
            2 => format!("timeout {nap} sh -c 'while :; do :; done'"),
            _ => format!("printf 'name? '; sleep {nap}"),
        };
        let text = format!("{nap}; echo {word} > {}; echo {word}", report.display());
        let reply = self.send(&text).await?;
        let shown = reply.at_prompt(0)?;
        ensure!(shown.contains(&format!("{word}\n")), "no {word}: {}", reply.end());
        let reported = fs::read_to_string(&report)?;
        ensure!(reported.trim_end() == word, "ready before it was: {}", reply.end());
        Ok(())
    }

    async fn python(&mut self) -> anyhow::Result<()> {
        let reply = self.send("python3 -q").await?;
        ensure!(reply.waits()?.ends_with(">>> "), "{}", reply.end());
        for _ in 0..self.random.usize(1..5) {
            let (word, report) = (self.word(), self.report());
            let nap = f64::from(self.random.u32(..100)) / 1000.0;
            let (a, b) = (self.random.u64(1..10_000), self.random.u64(1..10_000));
            let line = format!(
                "import time; time.sleep({nap}); open('{}', 'w').write('{word}') and print({a} * {b})",
                report.display()
            );
            let reply = self.send(&line).await?;
            let shown = reply.waits()?;
            ensure!(lines(shown, &(a * b).to_string()) == 1, "no product: {}", reply.end());
            ensure!(shown.ends_with(">>> "), "no prompt: {}", reply.end());
            let reported = fs::read_to_string(&report)?;
            ensure!(reported == word, "ready before it was: {}", reply.end());
        }
        self.send("exit()").await?.at_prompt(0)?;
        Ok(())
    }

    async fn question(&mut self) -> anyhow::Result<()> {
        let (word, hidden) = (self.word(), self.random.bool());
        let silent = if hidden { "-s " } else { "" };
        let asks = self.send(&format!("read {silent}-p 'name? ' x; echo; echo \"got $x\"")).await?;
        let echo_off = asks.text.contains("echo off]");
        ensure!(asks.waits()?.ends_with("name? ") && echo_off == hidden, "{}", asks.end());
        let reply = self.send(&word).await?;
        let shown = reply.at_prompt(0)?;
        ensure!(lines(shown, &format!("got {word}")) == 1, "{}", reply.end());
        Ok(())
    }

    async fn several_lines(&mut self) -> anyhow::Result<()> {
        let words: Vec<_> = (0..self.random.usize(1..6)).map(|_| self.word()).collect();
        let count = words.len();
        let text = format!(
            "for i in $(seq {count}); do read x; echo \"got $x\"; done\n{}",
            words.join("\n")
        );
        let reply = self.send(&text).await?;
        let shown = reply.at_prompt(0)?;
        let got: Vec<_> = shown.lines().filter_map(|it| it.strip_prefix("got ")).collect();
        ensure!(got == words, "{got:?}: {}", reply.end());
        Ok(())
    }

    /// A command that says in the report that it has begun, and then does not end by itself.
    fn endless(&self, word: &str) -> String {
        format!("echo {word} > {}; sleep 1000", self.report().display())
    }

    async fn begun(&self, word: &str) {
        let (report, word) = (self.report(), format!("{word}\n"));
        let begun = || fs::read_to_string(&report).is_ok_and(|it| it == word);
        wait_until("a command's beginning", begun).await;
    }

    async fn signal(&mut self) -> anyhow::Result<()> {
        let word = self.word();
        let (signal, status) =
            *self.random.choice([("SIGINT", 130), ("SIGTERM", 143)].iter()).context("no signal")?;
        let text = self.endless(&word);
        let signalling = async {
            self.begun(&word).await;
            // The shell itself is deaf to SIGTERM until its child is in front.
            let (agent, id) = (self.stage.agent.id(), self.id.clone().unwrap_or_default());
            wait_until("the program in front", || is_in_front(agent, &id, "sleep")).await;
            let signal = json!({ "sessionId": self.id, "signal": signal });
            self.stage.call("terminal_signal", signal).await
        };
        let (reply, signalled) = tokio::join!(self.send(&text), signalling);
        let signalled = Reply::of(signalled, &self.mark())?.text;
        let delivered = format!("delivered {signal} to foreground process group ");
        ensure!(signalled.starts_with(&delivered), "{signalled}");
        reply?.at_prompt(status)?;
        Ok(())
    }

    async fn cancelled(&mut self) -> anyhow::Result<()> {
        let word = self.word();
        let send = json!({ "sessionId": self.id, "text": self.endless(&word) });
        let cancel = Cancel::new();
        let cancelling = async {
            self.begun(&word).await;
            cancel.cancel("the soak does not wait");
        };
        let (agent, host) = (&self.stage.agent, &self.stage.host);
        let sending = host.call_with(agent, "terminal_send", send, &cancel);
        let (result, ()) = tokio::join!(sending, cancelling);
        Reply::of(result, &self.mark())?.at_prompt(130)?;
        // The next send gets nothing that this one left.
        self.command().await
    }

    async fn background(&mut self) -> anyhow::Result<()> {
        let word = self.word();
        let nap = f64::from(self.random.u32(10..500)) / 1000.0;
        let job = self.start_job(&format!("sleep {nap}; echo {word}; (exit 3)")).await?;
        let wait = json!({ "job_id": job, "wait": true });
        let output = Reply::of(self.stage.call("job_output", wait).await, &self.mark())?;
        let end = "\n[status: completed, wait: stdin_read]";
        ensure!(
            output.text.ends_with(end) && output.text.contains("[exit: 3]"),
            "{}",
            output.end()
        );
        ensure!(lines(&output.text, &word) == 1, "not once {word}: {}", output.end());
        Ok(())
    }

    async fn killed_job(&mut self) -> anyhow::Result<()> {
        let word = self.word();
        let job = self.start_job(&self.endless(&word)).await?;
        self.begun(&word).await;
        let busy = json!({ "sessionId": self.id, "text": "echo no" });
        let busy = self.stage.call("terminal_send", busy).await;
        let code = busy.error.as_ref().map(|it| it.info.code.clone());
        ensure!(code.as_deref() == Some("SEND_ACTIVE"), "a second send: {}", busy.text());
        let killed = self.stage.call("job_kill", json!({ "job_id": job })).await;
        ensure!(!killed.is_error(), "{}", killed.text());
        let wait = json!({ "job_id": job, "wait": true });
        let output = Reply::of(self.stage.call("job_output", wait).await, &self.mark())?;
        ensure!(output.text.contains("\n[status: killed"), "{}", output.end());
        self.command().await
    }

    async fn start_job(&self, text: &str) -> anyhow::Result<String> {
        let send = json!({ "sessionId": self.id, "text": text, "run_in_background": true });
        let started = Reply::of(self.stage.call("terminal_send", send).await, &self.mark())?;
        let job = started.text.strip_prefix("started background job ");
        Ok(job.with_context(|| started.text.clone())?.to_owned())
    }

    async fn much_output(&mut self) -> anyhow::Result<()> {
        let count = self.random.u64(1..20_000);
        let reply = self.send(&format!("seq {count}")).await?;
        reply.at_prompt(0)?;
        ensure!(lines(&reply.text, &count.to_string()) == 1, "{}", reply.end());
        // A page in the middle: the prompt is line 0 from the newest, the last number line 1.
        let offset = self.random.u64(1..=count.min(RETAINED_LINES - 100));
        let read = json!({ "sessionId": self.id, "offset": offset, "count": 50 });
        let page = Reply::of(self.stage.call("terminal_read", read).await, &self.mark())?;
        let newest = count - (offset - 1);
        let numbers: Vec<u64> = page.text.lines().filter_map(|it| it.parse().ok()).collect();
        let expected: Vec<u64> = (newest.saturating_sub(49).max(1)..=newest).collect();
        // Before the first of them come lines of earlier things.
        ensure!(numbers.ends_with(&expected), "offset {offset} of {count}: {}", page.end());
        Ok(())
    }

    async fn list(&mut self) -> anyhow::Result<()> {
        // Sessions of the others come and go meanwhile; what was open before and after is listed,
        // and what is listed was open before or after.
        let before = lock(&self.stage.open).clone();
        let list = Reply::of(self.stage.call("terminal_list", json!({})).await, &self.mark())?;
        let after = lock(&self.stage.open).clone();
        let listed: BTreeSet<String> =
            list.text.lines().filter_map(|it| it.split(' ').next()).map(str::to_owned).collect();
        for id in before.intersection(&after) {
            ensure!(listed.contains(id), "{id} is not listed: {}", list.end());
        }
        let own = self.id.clone().context("no session")?;
        let line = list.text.lines().find(|it| it.starts_with(&format!("{own} ")));
        ensure!(line.is_some_and(|it| it.contains("[shell] running pid=")), "{}", list.end());
        let strangers = lock(&self.stranger.open).clone();
        if !Arc::ptr_eq(&self.stage, &self.stranger) {
            let foreign: Vec<_> = listed.intersection(&strangers).collect();
            ensure!(foreign.is_empty(), "another agent's: {foreign:?}");
        }
        Ok(())
    }

    async fn foreign(&mut self) -> anyhow::Result<()> {
        let strangers = lock(&self.stranger.open).clone();
        let Some(id) =
            strangers.into_iter().next().filter(|_| !Arc::ptr_eq(&self.stage, &self.stranger))
        else {
            return Ok(());
        };
        let (tool, mut arguments) = match self.random.u8(..4) {
            0 => ("terminal_send", json!({ "text": "echo mine" })),
            1 => ("terminal_read", json!({})),
            2 => ("terminal_signal", json!({ "signal": "SIGINT" })),
            _ => ("terminal_close", json!({})),
        };
        arguments["sessionId"] = json!(id);
        let refused = self.stage.call(tool, arguments).await.text();
        let expected = format!("Error: unknown terminal session {id}");
        ensure!(refused == expected, "{tool}: {refused}");
        Ok(())
    }

    async fn shell_ends(&mut self) -> anyhow::Result<()> {
        let status = self.random.i32(0..100);
        let (text, ended) = match self.random.u8(..3) {
            0 => ("kill -9 $$".to_owned(), "code=null signal=SIGKILL".to_owned()),
            1 => (format!("sleep 1000 & exit {status}"), format!("code={status} signal=null")),
            _ => (format!("exec sh -c 'exit {status}'"), format!("code={status} signal=null")),
        };
        self.send(&text).await?.ended(&ended)?;
        let gone =
            self.stage.call("terminal_send", json!({ "sessionId": self.id, "text": "true" })).await;
        let code = gone.error.as_ref().map(|it| it.info.code.clone());
        ensure!(code.as_deref() == Some("SESSION_EXITED"), "{}", gone.text());
        self.close().await
    }

    async fn close_with_leftovers(&mut self) -> anyhow::Result<()> {
        for _ in 0..self.random.usize(..3) {
            let leftover = match self.random.u8(..5) {
                0 => "setsid sleep 1000 &",
                1 => "nohup sleep 1000 > /dev/null 2>&1 &",
                2 => "sleep 1000 & disown",
                3 => "(setsid bash -c 'sleep 1000 & sleep 1000' &)",
                _ => "(trap '' TERM HUP; sleep 1000) &",
            };
            self.send(leftover).await?.at_prompt(0)?;
        }
        if self.random.bool() {
            return self.close().await;
        }
        // In the middle of a send, which the close settles.
        let word = self.word();
        let text = self.endless(&word);
        let id = self.id.clone().context("no session")?;
        let stage = Arc::clone(&self.stage);
        let sending = tokio::spawn(async move {
            let send = json!({ "sessionId": id, "text": text });
            stage.call("terminal_send", send).await
        });
        self.begun(&word).await;
        self.close().await?;
        let reply = Reply::of(sending.await?, &self.mark())?;
        if !reply.text.contains("[wait: session_exit]") {
            bail!("a close does not settle the send: {}", reply.end());
        }
        Ok(())
    }
}

/// Whether `command` is the foreground of a session.
fn is_in_front(agent: &str, session: &str, command: &str) -> bool {
    processes_with_env("DSH_PTY_SESSION_ID", session).into_iter().any(|it| {
        let environment = fs::read(format!("/proc/{}/environ", it.pid)).unwrap_or_default();
        let ours = format!("DSH_SESSION_ID={agent}");
        let stat = fs::read_to_string(format!("/proc/{}/stat", it.pid)).unwrap_or_default();
        // After the name in parentheses: state, parent, group, session, terminal, its group.
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        it.command == command
            && environment.split(|byte| *byte == 0).any(|entry| entry == ours.as_bytes())
            && fields.get(2).is_some_and(|it| Some(it) == fields.get(5))
    })
}
