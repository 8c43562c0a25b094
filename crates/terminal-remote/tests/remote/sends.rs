//! What a send to a far shell tells.

use std::path::Path;

use terminal::{Evidence, Signal, StateKind, WaitReason};
use testkit::wait::shown;

use crate::support::{assert_prompt, assert_ready, bench, shell};

#[test]
fn commands_have_status_and_directory_and_the_prompt_is_likely() {
    shell(async |shell| {
        assert_eq!(shell.spawned.motd, "dsh> ");
        assert_eq!(shell.run("echo hi", 0).await, "hi\n");
        shell.run("(exit 7)", 7).await;
        let moved = shell.send("mkdir -p \"/tmp/a b's\"; cd \"/tmp/a b's\"").await;
        assert_prompt(&moved, Some(0));
        let cwd = moved.last_command.unwrap().cwd;
        assert_eq!(cwd.as_deref(), Some(Path::new("/tmp/a b's")));
        shell.run("rmdir \"/tmp/a b's\"", 0).await;
        // Nothing ran.
        assert_eq!(shell.send("").await.last_command, None);
        let loop_ = shell.send("for i in 1 2; do").await;
        assert_ready(&loop_, StateKind::Continuation);
        assert_prompt(&shell.send("echo $i; done").await, Some(0));
    });
}

/// Nothing is typed, and the far shell has said already where it is.
#[test]
fn an_empty_send_finds_the_prompt_that_is_there() {
    shell(async |shell| {
        let empty = async || shell.start("", false).done().await.unwrap();
        assert_ready(&empty().await, StateKind::Prompt);
        shell.run("echo hi", 0).await;
        assert_ready(&empty().await, StateKind::Prompt);
        assert_ready(&empty().await, StateKind::Prompt);
        // Behind an interrupt at the prompt.
        assert_ready(&shell.start("\u{3}", false).done().await.unwrap(), StateKind::Prompt);
        assert_ready(&empty().await, StateKind::Prompt);
        let loop_ = shell.send("for i in 1 2; do").await;
        assert_ready(&loop_, StateKind::Continuation);
        assert_ready(&empty().await, StateKind::Continuation);
        assert_prompt(&shell.send("echo $i; done").await, Some(0));
        // A line editor of which no mark of ours tells.
        assert_ready(&shell.send("bash --norc -i").await, StateKind::LineEditor);
        assert_ready(&empty().await, StateKind::LineEditor);
        assert_ready(&empty().await, StateKind::LineEditor);
        assert_prompt(&shell.send("exit 5").await, Some(5));
        let silent = shell.send("sleep 1000").await;
        assert_eq!(silent.wait_reason, WaitReason::InferredIdle);
        // Nobody was found to wait.
        assert_eq!(empty().await.wait_reason, WaitReason::InferredIdle);
    });
}

/// A command that is silent is waited for as long as it prints nothing that looks like a prompt.
#[test]
fn a_pause_is_no_end() {
    shell(async |shell| {
        for _ in 0..3 {
            assert_eq!(shell.run("sleep 0.3; echo done", 0).await, "done\n");
        }
        let silent = shell.send("sleep 1000").await;
        assert_eq!(silent.wait_reason, WaitReason::InferredIdle);
        let state = silent.state.unwrap();
        assert_eq!((state.kind, state.evidence), (StateKind::Relay, Evidence::Silence));
        assert_prompt(&shell.start("\u{3}", false).done().await.unwrap(), Some(130));
    });
}

/// What is in front of the far shell is not seen: what it shows is no proof.
#[test]
fn programs_that_ask_are_inferred() {
    shell(async |shell| {
        let asked = shell.send("read -p 'name: ' x").await;
        assert_eq!(asked.wait_reason, WaitReason::InferredIdle, "{asked:#?}");
        let state = asked.state.unwrap();
        assert_eq!((state.kind, state.evidence), (StateKind::Relay, Evidence::PromptText));
        assert_prompt(&shell.send("Ada").await, Some(0));
        assert_eq!(shell.run("echo $x", 0).await, "Ada\n");
        // One that announces its line editor.
        let editor = shell.send("bash --norc -i").await;
        assert_ready(&editor, StateKind::LineEditor);
        assert_eq!(editor.last_command, None);
        assert_prompt(&shell.send("exit 5").await, Some(5));
    });
}

/// The Enter of an answer goes apart, and what still looks like a question must not end the send before.
#[test]
fn an_answer_without_echo_is_submitted() {
    shell(async |shell| {
        for _ in 0..2 {
            let asked = shell.send("read -s -p 'pass? ' x; sleep 0.3; echo got $x").await;
            assert_eq!(asked.wait_reason, WaitReason::InferredIdle, "{asked:#?}");
            let answered = shell.send("hunter2").await;
            assert_prompt(&answered, Some(0));
            assert!(answered.viewport.contains("got hunter2"), "{answered:#?}");
        }
    });
}

/// The shell's own prompt, shown by a command, is not its prompt.
#[test]
fn a_prompt_that_a_command_shows_is_not_the_shells() {
    shell(async |shell| {
        let outcome = shell.send("printf %s \"${PS1@P}\"; sleep 0.7; echo later").await;
        let later = outcome.viewport.contains("later\n");
        // It looks like one, which is never more than an inference.
        assert!(later || outcome.wait_reason == WaitReason::InferredIdle, "{outcome:#?}");
    });
}

#[test]
fn the_far_side_keeps_neither_nonce_nor_history() {
    shell(async |shell| {
        // The line that asks is history itself.
        let history = shell.run("history", 0).await;
        assert_eq!(history.trim(), "1  history");
        assert_eq!(shell.run("export -p | grep -c -e PS1= -e dsh=", 1).await, "0\n");
        assert_eq!(shell.run("echo $HISTFILE$TERM$DSH_SHELL", 0).await, "xterm-256color1\n");
        // The mark of a prompt without the nonce, and with the word that everybody can see.
        shell.run("printf '\\e]133;B;0;1\\a'; sleep 0.1", 0).await;
        let forged = "printf '\\e]133;X;0;dsh=%s\\a' $DSH_REMOTE; (exit 9)";
        shell.run(forged, 9).await;
    });
}

#[test]
fn a_cancellation_interrupts_by_the_same_way_as_the_text() {
    shell(async |shell| {
        let operation = shell.start("echo begun; sleep 1000", true);
        shown(&*operation, "begun\n").await;
        assert!(operation.cancel("test"));
        assert_prompt(&operation.done().await.unwrap(), Some(130));
        assert_eq!(shell.run("echo next", 0).await, "next\n");
    });
}

#[test]
fn signals_take_a_second_connection() {
    bench(
        |far| far.row_alone(""),
        async |bench| {
            let shell = bench.open().await;
            let signal = bench.terminals().signal(&bench.agent, &shell.id, Signal::Interrupt).await;
            let text = signal.unwrap_err().to_string();
            assert!(text.contains("`controlArgv`") && text.contains("\\u0003"), "{text}");
            assert_eq!(shell.run("echo unharmed", 0).await, "unharmed\n");
        },
    );
}

#[test]
fn signals_reach_the_far_foreground() {
    shell(async |shell| {
        let terminals = shell.bench.terminals();
        let operation = shell.start("echo begun; sleep 1000", true);
        shown(&*operation, "begun\n").await;
        loop {
            match terminals.signal(&shell.bench.agent, &shell.id, Signal::Kill).await {
                Ok(receipt) => break assert!(receipt.target_pgid > 0),
                // It is not in front yet.
                Err(error) => assert_eq!(error.code(), "SHELL_KILL_REFUSED"),
            }
        }
        assert_prompt(&operation.done().await.unwrap(), Some(137));
    });
}
