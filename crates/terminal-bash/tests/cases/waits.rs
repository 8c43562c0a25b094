//! Waits that type nothing.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{pin::pin, sync::Arc, time::Duration};

use dsh_core::Cancel;
use futures_util::FutureExt as _;
use terminal::{
    SendOperation, SendRequest, SessionStatus, StateKind, TerminalError, WaitCondition, WaitEnd,
    WaitOutcome, WaitReason, WaitRequest,
};

use crate::shell::{Shell, bench, shell};

/// Longer than any test.
const LONG: Duration = Duration::from_mins(1);
/// Short enough to be waited for in vain.
const SHORT: Duration = Duration::from_millis(100);

impl Shell<'_> {
    async fn wait(
        &self,
        until: Vec<WaitCondition>,
        timeout: Duration,
    ) -> Result<WaitOutcome, TerminalError> {
        let request = WaitRequest { until, timeout };
        self.terminals().wait(&self.bench.agent, &self.id, request).await
    }

    fn in_background(&self, text: &str) -> Arc<dyn SendOperation> {
        let text = text.to_owned();
        let request = SendRequest { text, submit: true, background: true, cancel: Cancel::new() };
        self.terminals().start_send(&self.bench.agent, &self.id, request).unwrap()
    }
}

fn output(pattern: &str) -> WaitCondition {
    WaitCondition::Output(pattern.to_owned())
}

#[test]
fn a_pattern_is_found_in_the_output_and_not_in_the_echo() {
    shell(async |shell| {
        let gate = shell.gate();
        for _ in 0..2 {
            let send = shell.in_background("cat gate; echo READY; cat gate");
            {
                let mut waiting = pin!(shell.wait(vec![output("READY")], LONG));
                tokio::select! {
                    done = &mut waiting => panic!("the echo is no output: {done:#?}"),
                    () = shell.in_front("cat") => {}
                }
                assert!((&mut waiting).now_or_never().is_none());
                gate.open().await;
                let found = waiting.await.unwrap();
                assert_eq!(found.end, WaitEnd::Met(0));
                assert_eq!(found.matched.as_deref(), Some("READY"), "{found:#?}");
                assert!(!send.is_settled());
            }
            // Asked for late it is new as well, until the send ends.
            let again = shell.wait(vec![output("READY")], LONG).await.unwrap();
            assert_eq!(again.matched.as_deref(), Some("READY"));
            gate.open().await;
            assert_eq!(send.done().await.unwrap().wait_reason, WaitReason::StdinRead);
        }
        let old = shell.wait(vec![output("READY")], SHORT).await.unwrap();
        assert_eq!((old.end, old.output.as_str()), (WaitEnd::Timeout, ""), "it was delivered");
    });
}

#[test]
fn the_prompt_and_other_readers_are_waited_for() {
    bench("{ idleSilenceMs: 300, timeoutMs: 500 }", async |bench| {
        let shell = &bench.open().await;
        let gate = shell.gate();
        let at_once = shell.wait(vec![WaitCondition::Prompt], LONG).await.unwrap();
        assert_eq!(at_once.state.unwrap().kind, StateKind::Prompt);
        // Nobody waits for it any more.
        let send = shell.send("cat gate; python3 -c 'input(\"name? \")'; (exit 3)").await;
        assert_eq!(send.wait_reason, WaitReason::Timeout);
        let (asked, ()) = tokio::join!(
            shell.wait(vec![WaitCondition::Prompt, WaitCondition::Input], LONG),
            gate.open()
        );
        let asked = asked.unwrap();
        assert_eq!(asked.end, WaitEnd::Met(1), "{asked:#?}");
        assert_eq!(asked.state.unwrap().foreground.unwrap().command, "python3");
        assert_eq!(asked.output, "name? ");
        let waiting = async {
            let prompt = shell.wait(vec![WaitCondition::Prompt], LONG).await.unwrap();
            assert_eq!(prompt.last_command.unwrap().exit_code, Some(3));
        };
        let (send, ()) = tokio::join!(shell.send("me"), waiting);
        assert_eq!(send.viewport, "name? me\ndsh> ", "a wait takes nothing away");
    });
}

#[test]
fn whoever_is_told_of_the_prompt_may_send_at_once() {
    shell(async |shell| {
        for _ in 0..100 {
            let send = shell.in_background("true");
            shell.wait(vec![WaitCondition::Prompt], LONG).await.unwrap();
            assert!(send.is_settled(), "told while the send still held the terminal");
        }
    });
}

#[test]
fn silence_and_the_screen_are_waited_for() {
    shell(async |shell| {
        let silent = shell.wait(vec![output("x"), WaitCondition::Silence(SHORT)], LONG).await;
        assert_eq!(silent.unwrap().end, WaitEnd::Met(1));
        shell.run("echo on the screen", 0).await;
        let seen = shell.wait(vec![WaitCondition::Screen("^on the".to_owned())], LONG).await;
        assert_eq!(seen.unwrap().matched.as_deref(), Some("on the screen"));
    });
}

#[test]
fn the_end_of_a_session_ends_its_waits() {
    shell(async |shell| {
        let exit = || vec![WaitCondition::Exit];
        let (never, met, _) = tokio::join!(
            shell.wait(vec![output("never")], LONG),
            shell.wait(exit(), LONG),
            shell.send("exit 3"),
        );
        let never = never.unwrap();
        assert_eq!(never.end, WaitEnd::SessionExit);
        let exited = SessionStatus::Exited { exit_code: Some(3), signal: None };
        assert_eq!((never.session_status, met.unwrap().end), (exited, WaitEnd::Met(0)));
        // It has ended already.
        assert_eq!(shell.wait(exit(), LONG).await.unwrap().end, WaitEnd::Met(0));
        let late = shell.wait(vec![WaitCondition::Prompt], LONG).await.unwrap();
        assert_eq!(late.end, WaitEnd::SessionExit);

        let other = shell.bench.open().await;
        let (closed, _) = tokio::join!(other.wait(vec![output("never")], LONG), other.close());
        assert_eq!(closed.unwrap().end, WaitEnd::SessionExit);
    });
}

#[test]
fn what_can_never_come_true_is_refused_at_once() {
    shell(async |shell| {
        for (until, expected) in [
            (Vec::new(), "nothing to wait for"),
            (vec![output("a(")], "unclosed group"),
            (vec![WaitCondition::Screen("[".to_owned())], "unclosed character class"),
            (vec![WaitCondition::Silence(Duration::ZERO)], "0 ms"),
            (vec![WaitCondition::Silence(2 * LONG)], "cannot be seen within 60000 ms"),
        ] {
            let error = shell.wait(until, LONG).await.unwrap_err();
            assert_eq!(error.code(), "INVALID_ARGS");
            assert!(error.to_string().contains(expected), "{error}");
        }
    });
}
