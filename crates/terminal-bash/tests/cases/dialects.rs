//! zsh and fish, as the session's own shell and inside it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use terminal::{Evidence, SendOutcome, Signal, StateKind, WaitReason};

use crate::shell::{Bench, Shell, assert_prompt, assert_waits, bench};

/// What is true of every dialect.
const EVERYWHERE: &str = "idleSilenceMs: 300, timeoutMs: 20000";

fn zsh(term: &str, test: impl AsyncFnOnce(&Shell<'_>)) {
    with(&format!("{{ {EVERYWHERE}, shellDialect: zsh, term: {term} }}"), test);
}

fn fish(test: impl AsyncFnOnce(&Shell<'_>)) {
    with(&format!("{{ {EVERYWHERE}, shellDialect: fish }}"), test);
}

fn with(config: &str, test: impl AsyncFnOnce(&Shell<'_>)) {
    bench(config, async |bench: &Bench| {
        let shell = bench.open().await;
        assert_eq!(shell.spawned.motd, "dsh> ");
        test(&shell).await;
    });
}

#[track_caller]
fn status(outcome: &SendOutcome) -> Option<i32> {
    outcome.last_command.as_ref().and_then(|it| it.exit_code)
}

/// Statuses, texts, a working directory, and what is no command.
async fn assert_commands(shell: &Shell<'_>) {
    assert_eq!(shell.send("echo hi").await.viewport, "echo hi\nhi\ndsh> ");
    for _ in 0..20 {
        let outcome = shell.send("true").await;
        assert_prompt(&outcome, Some(0));
        assert_eq!(outcome.viewport, "true\ndsh> ");
    }
    assert_prompt(&shell.send("false").await, Some(1));
    assert_prompt(&shell.send("sh -c 'exit 42'").await, Some(42));
    assert_eq!(shell.send("").await.last_command, None);
    assert_eq!(shell.type_only("abc\u{3}").await.last_command, None);
    assert_prompt(&shell.send("sleep 1; true").await, Some(0));
    assert_prompt(&shell.send("echo one\nsleep .2\nsh -c 'exit 4'").await, Some(4));
    assert_eq!(shell.send("echo 'a b!c'").await.viewport, "echo 'a b!c'\na b!c\ndsh> ");
    let moved = shell.send("cd /; false").await.last_command.unwrap();
    assert_eq!(moved.cwd.as_deref(), Some(std::path::Path::new("/")));
    shell.send("cd -").await;
}

/// Nothing of the hooks is inherited.
async fn assert_private(shell: &Shell<'_>) {
    let inherited = shell.send("env | grep -ca 'dsh=\\|133;\\|__dsh'; env | grep -a HIST").await;
    assert!(inherited.viewport.contains("\n0\n"), "{inherited:?}");
    assert!(inherited.viewport.contains("\nHISTFILE=\n"), "{inherited:?}");
}

/// Readers, secrets, jobs, signals.
async fn assert_programs(shell: &Shell<'_>) {
    assert_waits(&shell.send("cat").await, StateKind::Line);
    assert_eq!(shell.send("line").await.viewport, "line\nline\n");
    assert_prompt(&shell.type_only("\u{4}").await, Some(0));
    assert_waits(&shell.send("cat").await, StateKind::Line);
    let stopped = shell.type_only("\u{1a}").await;
    assert_eq!(stopped.state.as_ref().unwrap().kind, StateKind::Prompt, "{stopped:#?}");
    assert_eq!(stopped.last_command, None, "{stopped:#?}");
    assert_waits(&shell.send("fg").await, StateKind::Line);
    assert_prompt(&shell.type_only("\u{4}").await, Some(0));
    let sleeping = shell.start("sleep 100", true).unwrap();
    shell.in_front("sleep").await;
    shell.signal(Signal::Interrupt).await.unwrap();
    assert_prompt(&sleeping.done().await.unwrap(), Some(130));
    assert_prompt(&shell.send("printf 'a\tb' > t").await, Some(0));
    assert_eq!(std::fs::read_to_string(shell.path("t")).unwrap(), "a\tb");
}

/// What a file of questions and nested shells leave behind: nothing.
async fn assert_neighbours(shell: &Shell<'_>) {
    let all = r"\033[6n\033[c\033[>c\033]11;?\007\033[?u\033[>q";
    shell.send(&format!("printf '{all}' > all")).await;
    for command in ["cat all", "cat all all; sleep .01", "sh -c 'cat all'"] {
        for _ in 0..5 {
            assert_eq!(shell.send(command).await.wait_reason, WaitReason::StdinRead);
            assert_eq!(shell.send("echo ok").await.viewport, "echo ok\nok\ndsh> ");
        }
    }
    for nested in ["bash --norc -i", "sh -i"] {
        let inside = shell.send(nested).await;
        assert_eq!(inside.wait_reason, WaitReason::StdinRead, "{inside:#?}");
        let inner = shell.send("false").await;
        assert_eq!((inner.wait_reason, inner.last_command), (WaitReason::StdinRead, None));
        assert_prompt(&shell.send("exit 9").await, Some(9));
    }
}

async fn assert_ends(shell: &Shell<'_>) {
    let ended = shell.send("exit 7").await;
    assert_eq!(ended.wait_reason, WaitReason::SessionExit);
    let exited = terminal::SessionStatus::Exited { exit_code: Some(7), signal: None };
    assert_eq!(ended.session_status, exited);
}

#[test]
#[ignore = "needs zsh"]
fn zsh_tells_what_bash_tells() {
    for term in ["xterm-256color", "dumb"] {
        zsh(term, async |shell| {
            assert_commands(shell).await;
            assert_private(shell).await;
            assert_programs(shell).await;
            assert_neighbours(shell).await;

            assert_waits(&shell.send("for i in 1 2\ndo").await, StateKind::Continuation);
            let looped = shell.send("echo $i; done").await;
            assert_prompt(&looped, Some(0));
            assert!(looped.viewport.ends_with("\n1\n2\ndsh> "), "{looped:?}");
            assert_waits(&shell.send("cat <<E\nhello").await, StateKind::Continuation);
            assert!(shell.send("E").await.viewport.contains("\nhello\n"));

            let wrong = shell.send("echo )").await.last_command.unwrap();
            assert_eq!((wrong.exit_code, wrong.duration_ms), (Some(1), 0));
            for quiet in ["", "  ", "abc\u{15}"] {
                assert_eq!(shell.send(quiet).await.last_command, None, "{quiet:?}");
            }
            // No newline at the end of the output: nothing is added to it.
            assert_eq!(shell.send("printf hi").await.viewport, "printf hi\nhidsh> ");
            let raw = shell.send("read -sk1").await;
            assert_eq!((raw.wait_reason, raw.last_command), (WaitReason::StdinRead, None));
            assert_prompt(&shell.type_only("k").await, Some(0));
            assert_ends(shell).await;
        });
    }
}

#[test]
#[ignore = "needs zsh"]
fn the_hooks_of_zsh_live_beside_the_users_own() {
    zsh("xterm-256color", async |shell| {
        shell.send("precmd() { echo pre; }; preexec() { echo exec; }").await;
        let both = shell.send("(exit 3)").await;
        assert_prompt(&both, Some(3));
        assert_eq!(both.viewport, "(exit 3)\nexec\npre\ndsh> ");
        shell.send("unfunction precmd preexec; PS1='mine> ' RPS1=right; export PS1").await;
        let again = shell.send("(exit 4)").await;
        assert_prompt(&again, Some(4));
        assert_eq!(again.viewport, "(exit 4)\ndsh> ");
        shell.send("trap 'echo debug' DEBUG").await;
        // zsh runs it for the hooks as well.
        let traced = shell.send("(exit 2)").await;
        assert_prompt(&traced, Some(2));
        assert!(traced.viewport.contains("\ndebug\n"), "{traced:?}");
        shell.send("trap - DEBUG; setopt ksharrays shwordsplit allexport promptsubst").await;
        assert_prompt(&shell.send("(exit 5)").await, Some(5));
        assert_private(shell).await;
        // Streams that are elsewhere.
        shell.send("exec >out 2>err").await;
        assert_prompt(&shell.send("(exit 6)").await, Some(6));
        shell.send("exec >/dev/tty 2>&1").await;
        assert_eq!(shell.run("cat out err", 0).await, "");
        assert_prompt(&shell.send("set -euo pipefail").await, Some(0));
        assert_prompt(&shell.send("true").await, Some(0));
        assert_eq!(shell.send("false").await.wait_reason, WaitReason::SessionExit);
    });
}

/// Whoever takes the hooks away is still found at the prompt, and no status is made up.
#[test]
#[ignore = "needs zsh"]
fn zsh_without_hooks_has_no_status() {
    zsh("xterm-256color", async |shell| {
        let bare = shell.send("exec zsh -f").await;
        assert_eq!(bare.wait_reason, WaitReason::StdinRead, "{bare:#?}");
        for _ in 0..2 {
            let outcome = shell.send("false").await;
            assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
            assert_eq!(outcome.last_command.unwrap().exit_code, None);
        }
    });
}

/// No start-up file, no history file, nothing of the user's is read or written.
#[test]
#[ignore = "needs zsh"]
fn zsh_leaves_the_users_files_alone() {
    zsh("xterm-256color", async |shell| {
        let home = shell.path("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join(".zshrc"), "HISTFILE=~/.zsh_history SAVEHIST=100 HISTSIZE=100\n")
            .unwrap();
        std::fs::write(home.join(".zsh_history"), "mine\n").unwrap();
        shell.send("HOME=$PWD/home; true; fc -l").await;
        assert_ends(shell).await;
        assert_eq!(std::fs::read_to_string(home.join(".zsh_history")).unwrap(), "mine\n");
    });
}

#[test]
#[ignore = "needs fish"]
fn fish_tells_what_bash_tells() {
    fish(async |shell| {
        assert_commands(shell).await;
        assert_private(shell).await;
        assert_programs(shell).await;
        assert_neighbours(shell).await;

        assert_waits(&shell.send("for i in 1 2").await, StateKind::Continuation);
        let looped = shell.send("echo $i\nend").await;
        assert_prompt(&looped, Some(0));
        assert!(looped.viewport.ends_with("\n1\n2\ndsh> "), "{looped:?}");
        assert_waits(&shell.send("echo 'a").await, StateKind::Continuation);
        let mut cancelled = shell.type_only("\u{3}").await;
        while cancelled.state.unwrap().kind == StateKind::Continuation {
            // fish has not handled the interrupt yet, or was not at its keys.
            cancelled = shell.type_only("\u{3}").await;
        }
        assert_prompt(&shell.send("true").await, Some(0));

        let wrong = shell.send("echo )").await;
        assert_prompt(&wrong, Some(127));
        assert_prompt(&shell.send("echo next").await, Some(0));
        assert_eq!(shell.send("").await.last_command, None);
        assert_ends(shell).await;
    });
}

#[test]
#[ignore = "needs fish"]
fn the_hooks_of_fish_live_beside_the_users_own() {
    fish(async |shell| {
        shell.send("function mine --on-event fish_prompt; echo pre; end").await;
        shell.send("function yours --on-event fish_preexec; echo exec; end").await;
        let both = shell.send("sh -c 'exit 3'").await;
        assert_prompt(&both, Some(3));
        assert_eq!(both.viewport, "sh -c 'exit 3'\nexec\npre\ndsh> ");
        shell.send("functions -e mine yours; function fish_prompt; echo 'mine> '; end").await;
        let again = shell.send("sh -c 'exit 4'").await;
        assert_prompt(&again, Some(4));
        assert_eq!(again.viewport, "sh -c 'exit 4'\ndsh> ");
    });
}

/// A16: inside another shell.
#[test]
#[ignore = "needs zsh, fish"]
fn nested_shells_of_every_kind_are_found() {
    with(&format!("{{ {EVERYWHERE} }}"), async |shell| {
        for nested in ["zsh -f", "fish --no-config", "dash", "bash --norc -i"] {
            let inside = shell.send(nested).await;
            assert_eq!(inside.wait_reason, WaitReason::StdinRead, "{nested}: {inside:#?}");
            for _ in 0..3 {
                let inner = shell.send("echo in''side").await;
                assert_eq!(inner.wait_reason, WaitReason::StdinRead, "{nested}: {inner:#?}");
                assert_ne!(inner.state.as_ref().unwrap().kind, StateKind::Prompt);
                assert_ne!(inner.state.as_ref().unwrap().evidence, Evidence::Silence);
                assert!(inner.viewport.contains("\ninside\n"), "{nested}: {inner:?}");
                assert_eq!(status(&inner), None);
            }
            assert_prompt(&shell.send("exit 9").await, Some(9));
        }
    });
}
