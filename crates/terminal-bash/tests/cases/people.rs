//! People who watch a session, and one who takes it over.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use agents::Notice;
use dsh_core::Cancel;
use secrecy::SecretString;
use terminal::{ReadRequest, Seen, SendRequest, StateKind, TerminalError, Watcher, WindowSize};
use terminal_bash::screen::{Screen, ScreenConfig};

use crate::shell::{Shell, assert_prompt, assert_waits, shell};

/// One who watches, with a terminal of his own.
struct Eyes {
    watcher: Box<dyn Watcher>,
    screen: Screen,
    size: WindowSize,
    echo: Option<bool>,
    pictures: usize,
    /// All bytes.
    bytes: Vec<u8>,
}

impl Eyes {
    fn sees(&self) -> String {
        self.screen.shown().text()
    }

    /// Sees one thing more; false at the end.
    async fn look(&mut self) -> bool {
        let Some(seen) = self.watcher.next().await else { return false };
        let mut shown = |bytes: &[u8]| {
            self.screen.feed(bytes, &mut Vec::new());
            self.bytes.extend_from_slice(bytes);
        };
        match seen {
            Seen::Picture(bytes) => {
                shown(&bytes);
                self.pictures += 1;
            }
            Seen::Output(bytes) => shown(&bytes),
            Seen::Echo(on) => self.echo = Some(on),
            Seen::Resized(size) => {
                self.size = size;
                self.screen.resize(size.rows, size.columns);
            }
        }
        true
    }

    async fn until(&mut self, what: &str, mut true_of: impl FnMut(&Self) -> bool) {
        while !true_of(self) {
            assert!(self.look().await, "it has ended without {what}:\n{}", self.sees());
        }
    }

    /// Looks until this is shown.
    async fn text(&mut self, text: &str) {
        self.until(text, |it| it.sees().contains(text)).await;
    }

    async fn until_the_end(&mut self) {
        while self.look().await {}
    }
}

impl Shell<'_> {
    async fn watch(&self) -> Eyes {
        let watcher = self.terminals().watch(&self.id).await.unwrap();
        let config = ScreenConfig { rows: 40, cols: 160, max_lines: 10_000, max_bytes: 4 << 20 };
        Eyes {
            watcher,
            screen: Screen::new(config),
            size: WindowSize { rows: 0, columns: 0 },
            echo: None,
            pictures: 0,
            bytes: Vec::new(),
        }
    }

    async fn shows(&self) -> String {
        self.terminals().screen(&self.bench.agent, &self.id).await.unwrap().text()
    }

    /// What the agent reads next of what people did.
    fn told(&self) -> Vec<String> {
        let notices = self.bench.agent.inbox().drain().into_iter();
        notices.filter(Notice::deliver).map(|it| it.text).collect()
    }
}

#[test]
fn whoever_watches_sees_what_there_is_and_what_comes_until_the_end() {
    shell(async |shell| {
        shell.send("echo be''fore").await;
        let mut eyes = shell.watch().await;
        let gate = shell.gate();
        let send = shell.start("echo du''ring; cat gate; echo af''ter", true).unwrap();
        eyes.text("before").await;
        eyes.text("during").await;
        assert_eq!((eyes.pictures, eyes.echo), (1, Some(true)));
        assert_eq!(eyes.size, WindowSize { rows: 40, columns: 160 });
        let mut late = shell.watch().await;
        late.text("during").await;
        assert!(!send.is_settled());
        gate.open().await;
        send.done().await.unwrap();
        for it in [&mut eyes, &mut late] {
            it.text("after\ndsh>").await;
            assert_eq!(it.sees(), shell.shows().await);
            let text = String::from_utf8_lossy(&it.bytes).into_owned();
            assert!(!text.contains("\x1b]") && !text.contains("133;"), "{text:?}");
        }
        let last = shell.start("printf la''st; exit 3", true).unwrap();
        eyes.until_the_end().await;
        assert!(eyes.sees().contains("last"), "{}", eyes.sees());
        last.done().await.unwrap();
        let mut afterwards = shell.watch().await;
        afterwards.until_the_end().await;
        assert!(afterwards.sees().contains("last"));
        shell.close().await.unwrap();
        late.until_the_end().await;
        assert!(late.sees().contains("last"), "closed, and yet to be seen");
        assert_eq!(shell.terminals().watch(&shell.id).await.err().unwrap().code(), "NO_SESSION");
    });
}

#[test]
fn those_who_do_not_look_lose_nothing_but_what_has_scrolled_by() {
    shell(async |shell| {
        let mut first = shell.watch().await;
        first.text("dsh>").await;
        let mut all = Vec::new();
        for _ in 0..100 {
            let mut eyes = shell.watch().await;
            eyes.text("dsh>").await;
            all.push(eyes);
        }
        // The first looks all the time, the others not at all.
        let (outcome, ()) = tokio::join!(shell.send("seq 1 300000"), first.text("300000\ndsh>"));
        assert_prompt(&outcome, Some(0));
        let shown = shell.shows().await;
        let read = shell.read_page(ReadRequest::newest(0, 3)).await;
        assert_eq!(read.text, "299999\n300000\ndsh> ");
        for eyes in &mut all {
            eyes.text("300000\ndsh>").await;
            assert_eq!((eyes.sees(), eyes.pictures), (shown.clone(), 2));
            assert!(eyes.bytes.len() < 2 * (256 << 10), "{}", eyes.bytes.len());
        }
        assert_eq!(first.sees(), shown);
        drop(all);
        assert_prompt(&shell.send("seq 1 300000").await, Some(0));
        first.text("300000\ndsh>").await;
    });
}

#[test]
fn a_full_screen_and_another_size_are_seen() {
    shell(async |shell| {
        let script = "
say('\\x1b[?1049h\\x1b[2J\\x1b[3;5Hred \\x1b[31mtext')
sys.stdin.readline()
say('\\x1b[?1049l')
";
        let outcome = shell.python(script).await;
        assert_waits(&outcome, StateKind::Tui);
        let mut eyes = shell.watch().await;
        eyes.text("red text").await;
        assert!(eyes.screen.alternate());
        let size = WindowSize { rows: 10, columns: 60 };
        shell.terminals().resize(&shell.bench.agent, &shell.id, size).await.unwrap();
        eyes.until("two pictures", |it| it.pictures == 2).await;
        assert_eq!(eyes.size, size);
        shell.send("").await;
        eyes.text("dsh>").await;
        assert!(!eyes.screen.alternate());
        assert_eq!(eyes.sees(), shell.shows().await);
    });
}

#[test]
fn that_a_program_hides_what_is_typed_is_seen_without_output() {
    shell(async |shell| {
        let mut eyes = shell.watch().await;
        eyes.text("dsh>").await;
        let script = "
new = termios.tcgetattr(0)
sys.stdin.readline()
new[3] &= ~termios.ECHO
termios.tcsetattr(0, termios.TCSANOW, new)
sys.stdin.readline()
";
        shell.python(script).await;
        assert_eq!(eyes.echo, Some(true));
        let lease = shell.terminals().take_over(&shell.id).unwrap();
        lease.type_text("go on\r").await.unwrap();
        eyes.until("no echo", |it| it.echo == Some(false)).await;
        lease.type_text("hidden\r").await.unwrap();
        eyes.until("an echo", |it| it.echo == Some(true)).await;
        let told = shell.told();
        assert_eq!(
            told,
            [format!(
                "[a person typed in {}: \"go on\\n\", (7 bytes that the terminal does not show)]",
                shell.id
            )]
        );
    });
}

#[test]
fn a_secret_is_typed_where_it_is_not_shown_and_told_by_its_length() {
    shell(async |shell| {
        let lease = shell.terminals().take_over(&shell.id).unwrap();
        let secret = || SecretString::from("hunter2");
        let refused = lease.enter_secret(secret()).await.unwrap_err();
        assert_eq!(refused.code(), "SECRET_SHOWN", "{refused}");
        assert_eq!(shell.told(), <[String; 0]>::default());
        lease.give_back();

        let outcome = shell.send("read -s -p 'Word: ' x; echo got ${#x}").await;
        assert_waits(&outcome, StateKind::Password);
        let mut eyes = shell.watch().await;
        eyes.until("no echo", |it| it.echo == Some(false)).await;
        let lease = shell.terminals().take_over(&shell.id).unwrap();
        lease.enter_secret(secret()).await.unwrap();
        eyes.text("got 7").await;
        let hidden =
            format!("[a person typed 7 bytes in {} that the terminal does not show]", shell.id);
        assert_eq!(shell.told(), [hidden]);
        lease.give_back();
        let next = shell.send("true").await;
        assert_prompt(&next, Some(0));
        assert!(next.viewport.contains("got 7"), "{next:#?}");
        let page = shell.read(0, 500).await.text;
        let seen = String::from_utf8_lossy(&eyes.bytes).into_owned();
        for text in [next.viewport, page, seen] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    });
}

#[test]
fn a_send_that_runs_settles_by_what_a_person_typed() {
    shell(async |shell| {
        let gate = shell.gate();
        let request = SendRequest {
            text: "cat gate; read -p 'name? ' n; echo hi $n".to_owned(),
            submit: true,
            background: true,
            cancel: Cancel::new(),
        };
        let send = shell.terminals().start_send(&shell.bench.agent, &shell.id, request).unwrap();
        shell.in_front("cat").await;
        let lease = shell.terminals().take_over(&shell.id).unwrap();
        lease.type_text("bob\r").await.unwrap();
        assert!(!send.is_settled());
        gate.open().await;
        let outcome = send.done().await.unwrap();
        assert_eq!(shell.told(), [format!("[a person typed in {}: \"bob\\n\"]", shell.id)]);
        assert!(outcome.viewport.contains("hi bob"), "{outcome:#?}");
        assert_eq!(outcome.last_command.unwrap().exit_code, Some(0));
    });
}

#[test]
fn a_question_that_a_send_has_settled_by_is_answered_by_a_person() {
    shell(async |shell| {
        let asked = shell.send("read -p 'name? ' n; echo hi $n").await;
        assert_waits(&asked, StateKind::Line);
        let mut eyes = shell.watch().await;
        let lease = shell.terminals().take_over(&shell.id).unwrap();
        let held = shell.start("ann", true).err().unwrap();
        assert_eq!(held, TerminalError::LeaseHeld { id: shell.id.clone() });
        lease.type_text("bob\r").await.unwrap();
        eyes.text("hi bob").await;
        drop(lease);
        let next = shell.send("echo $n").await;
        assert_prompt(&next, Some(0));
        assert!(next.viewport.contains("hi bob"), "{next:#?}");
    });
}

#[test]
fn the_status_of_a_persons_command_is_not_told_as_the_agents() {
    shell(async |shell| {
        let gate = shell.gate();
        shell.run("true", 0).await;
        let lease = shell.terminals().take_over(&shell.id).unwrap();
        for piece in ["cat gate; ", "(exit 7)", "\r"] {
            lease.type_text(piece).await.unwrap();
        }
        shell.in_front("cat").await;
        lease.give_back();
        let send = shell.start("", true).unwrap();
        gate.open().await;
        let outcome = send.done().await.unwrap();
        assert_eq!(outcome.last_command, None, "{outcome:#?}");
        assert_eq!(shell.run("echo $?", 0).await, "7\n");
        let wrong = shell.send("(exit 5)").await;
        assert_prompt(&wrong, Some(5));
    });
}

#[test]
fn what_the_terminal_does_not_take_is_refused_whole() {
    shell(async |shell| {
        shell.gate();
        let send = shell.start("cat gate", true).unwrap();
        shell.in_front("cat").await;
        let lease = shell.terminals().take_over(&shell.id).unwrap();
        let large = "x".repeat((64 << 10) + 1);
        assert_eq!(lease.type_text(&large).await.unwrap_err().code(), "INPUT_TOO_LARGE");
        lease.type_text(&"x\r".repeat(20 << 10)).await.unwrap();
        let more = lease.type_text(&"z\r".repeat(30 << 10)).await.unwrap_err();
        assert_eq!(more.code(), "INPUT_TOO_LARGE", "{more}");
        let told = shell.told().concat();
        assert!(told.contains("more)") && !told.contains('z'), "{told}");
        lease.signal(terminal::Signal::Interrupt).await.unwrap();
        assert_eq!(shell.told(), [format!("[a person sent SIGINT to {}]", shell.id)]);
        send.done().await.unwrap();
    });
}

#[test]
fn a_session_ends_under_those_who_watch_it_and_who_has_taken_it_over() {
    shell(async |shell| {
        let mut eyes = shell.watch().await;
        let lease = shell.terminals().take_over(&shell.id).unwrap();
        lease.type_text("echo un''finished").await.unwrap();
        eyes.text("un''finished").await;
        shell.close().await.unwrap();
        eyes.until_the_end().await;
        let gone = lease.type_text("x").await.unwrap_err();
        assert_eq!(gone.code(), "SESSION_EXITED", "{gone}");
    });
}
