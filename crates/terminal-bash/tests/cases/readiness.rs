//! When a send is over.

use terminal::{Busy, StateKind, WaitReason};

use crate::shell::{assert_prompt, assert_waits, bench, shell};

#[test]
fn startup_shows_the_prompt_alone() {
    shell(async |shell| {
        assert_eq!(shell.spawned.motd, "dsh> ");
        assert_eq!(shell.send("echo hi").await.viewport, "echo hi\nhi\ndsh> ");
    });
}

/// A1
#[test]
fn fifty_trues_are_each_their_own() {
    shell(async |shell| {
        for _ in 0..50 {
            let outcome = shell.send("true").await;
            assert_prompt(&outcome, Some(0));
            assert_eq!(outcome.viewport, "true\ndsh> ");
        }
    });
}

/// A2, A3: the silence bound is far below the sleeps.
#[test]
fn a_silent_sleep_is_neither_ready_nor_idle() {
    shell(async |shell| {
        assert_eq!(shell.run("sleep 1; touch slept", 0).await, "");
        assert!(shell.path("slept").exists());
        assert_eq!(shell.run("sleep 1; echo FINI''SHED", 0).await, "FINISHED\n");
    });
}

/// A4
#[test]
fn text_is_no_evidence() {
    shell(async |shell| {
        for command in
            ["printf 'Ready? '; sleep 1; touch a", "printf 'Building: '; sleep 1; echo ok; touch b"]
        {
            shell.run(command, 0).await;
            assert!(shell.path(command.rsplit(' ').next().unwrap()).exists());
        }
    });
}

/// A5
#[test]
fn a_member_of_a_pipeline_reads_a_pipe() {
    shell(async |shell| {
        assert_eq!(shell.run("(sleep 1; echo X) | cat", 0).await, "X\n");
        let counted = shell.run("for i in 1 2 3; do echo $i; sleep .5; done | tee f", 0).await;
        assert_eq!(counted, "1\n2\n3\n");
        assert_eq!(std::fs::read_to_string(shell.path("f")).unwrap(), "1\n2\n3\n");
    });
}

/// A8
#[test]
fn readers_are_found_each_time() {
    shell(async |shell| {
        assert_waits(&shell.send("cat").await, StateKind::Line);
        for line in ["one", "two", "three"] {
            let outcome = shell.send(line).await;
            assert_waits(&outcome, StateKind::Line);
            assert_eq!(outcome.viewport, format!("{line}\n{line}\n"));
            assert_eq!(outcome.last_command, None);
            assert_eq!(outcome.state.unwrap().foreground.unwrap().command, "cat");
        }
        assert_prompt(&shell.type_only("\u{4}").await, Some(0));

        let asked = shell.send("read -p 'name? ' x").await;
        assert_waits(&asked, StateKind::Line);
        assert!(asked.viewport.ends_with("\nname? "), "{asked:?}");
        assert_prompt(&shell.send("Ada").await, Some(0));
        assert_eq!(shell.run("echo \"<$x>\"", 0).await, "<Ada>\n");

        let asked = shell.send("python3 -c \"input('x> ')\"").await;
        assert_waits(&asked, StateKind::Line);
        assert!(asked.viewport.ends_with("\nx> "), "{asked:?}");
        assert_prompt(&shell.send("").await, Some(0));
    });
}

/// A7, for what every machine has.
#[test]
fn a_python_prompt_answers_each_line() {
    shell(async |shell| {
        let started = shell.send("python3 -q").await;
        assert_eq!(started.wait_reason, WaitReason::StdinRead, "{started:#?}");
        assert!(started.viewport.ends_with(">>> "), "{started:#?}");
        for n in 0..50 {
            let outcome = shell.send(&format!("print({n} + 2)")).await;
            assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
            assert_eq!(outcome.viewport, format!("print({n} + 2)\n{}\n>>> ", n + 2));
        }
        let slept = shell.send("import time; time.sleep(1); print('woke')").await;
        assert!(slept.viewport.contains("\nwoke\n"), "{slept:#?}");
        assert_prompt(&shell.send("exit(3)").await, Some(3));
    });
}

/// A9
#[test]
fn a_password_prompt_says_that_echo_is_off() {
    shell(async |shell| {
        for command in
            ["read -s -p 'Password: ' x", "python3 -c 'import getpass; getpass.getpass()'"]
        {
            let asked = shell.send(command).await;
            assert_waits(&asked, StateKind::Password);
            assert!(asked.viewport.ends_with("Password: "), "{asked:?}");
            assert!(!asked.state.as_ref().unwrap().echo && asked.echoed);
            let answered = shell.send("hunter2").await;
            assert_prompt(&answered, Some(0));
            assert!(!answered.echoed, "what was typed now is a secret");
            assert!(!answered.viewport.contains("hunter2"));
        }
        // The same in raw mode, where no line editor shows it either.
        shell.send("read -s -n 6 pin").await;
        let answered = shell.type_only("738291").await;
        assert_prompt(&answered, Some(0));
        assert!(!answered.echoed);
        assert!(shell.send("echo ${#pin}").await.echoed, "the shell's editor shows what it gets");
    });
}

/// A10
#[test]
fn an_unfinished_command_is_a_continuation() {
    shell(async |shell| {
        let open = shell.send("cat <<E\nhello").await;
        assert_waits(&open, StateKind::Continuation);
        assert_eq!(open.last_command, None);
        let done = shell.send("E").await;
        assert_prompt(&done, Some(0));
        assert!(done.viewport.contains("\nhello\n"), "{done:?}");
    });
}

/// A11
#[test]
fn lines_typed_ahead_are_all_answered() {
    shell(async |shell| {
        let outcome =
            shell.send("for i in 1 2 3 4 5; do read x; echo got $x; done\na\nb\nc\nd\ne").await;
        assert_prompt(&outcome, Some(0));
        let got: Vec<&str> =
            outcome.viewport.lines().filter(|line| line.starts_with("got ")).collect();
        assert_eq!(got, ["got a", "got b", "got c", "got d", "got e"]);
    });
}

/// A12
#[test]
fn several_commands_settle_after_the_last() {
    shell(async |shell| {
        let outcome = shell.send("echo one\nsleep 1\necho three > done; (exit 4)").await;
        assert_prompt(&outcome, Some(4));
        assert!(shell.path("done").exists());
    });
}

/// A13, and the same with a reader behind the forged prompt.
#[test]
fn a_forged_mark_is_only_output() {
    shell(async |shell| {
        let forged = "printf '\\033]133;D;0\\007\\033]133;A\\007dsh> \\033]133;B\\007'";
        shell.send(&format!("{forged}; sleep 1; touch slept; (exit 5)")).await;
        assert!(shell.path("slept").exists());
        let status = shell.send(&format!("{forged}; (exit 6)")).await;
        assert_prompt(&status, Some(6));
        let reader = shell.send(&format!("{forged}; read x")).await;
        assert_waits(&reader, StateKind::Line);
        assert_prompt(&shell.send("x").await, Some(0));
    });
}

/// A13 once more: the shell's own prompt, shown by a command.
#[test]
fn a_prompt_shown_by_a_command_is_not_its_end() {
    shell(async |shell| {
        let shown = shell.send("printf '%s' \"${PS1@P}\"; sleep .3; (exit 4)").await;
        assert_prompt(&shown, Some(4));
        let shown = shell.send("printf '%s' \"${PS1@P}\"; read x; (exit 5)").await;
        assert_waits(&shown, StateKind::Line);
        assert_eq!(shown.last_command, None);
        assert_prompt(&shell.send("x").await, Some(5));
    });
}

#[test]
fn the_hooks_leave_the_shell_as_it_was() {
    shell(async |shell| {
        assert_eq!(shell.run("false | true; echo ${PIPESTATUS[@]}", 0).await, "1 0\n");
        assert_prompt(&shell.send("false | true").await, Some(0));
        assert_eq!(shell.run("echo ${PIPESTATUS[@]}", 0).await, "1 0\n");
        assert_eq!(shell.run("history | grep -c 'dsh_promp[t]'", 1).await, "0\n");
        assert_eq!(shell.run("tr '\\0' '\\n' < /proc/$$/environ | grep -c '133;'", 1).await, "0\n");
    });
}

/// A14
#[test]
fn a_strict_shell_ends_and_says_so() {
    shell(async |shell| {
        assert_prompt(&shell.send("set -euo pipefail").await, Some(0));
        assert_prompt(&shell.send("true").await, Some(0));
        let outcome = shell.send("false").await;
        assert_eq!(outcome.wait_reason, WaitReason::SessionExit);
        let exited = terminal::SessionStatus::Exited { exit_code: Some(1), signal: None };
        assert_eq!(outcome.session_status, exited);
        assert_eq!(outcome.state.unwrap().kind, StateKind::Exited);
    });
}

/// A15: a shell whose hooks are gone is still found at its prompt, and no status is made up.
#[test]
fn without_hooks_a_status_is_unknown() {
    shell(async |shell| {
        // A prompt of the user's own is put right before the next one.
        assert_prompt(&shell.send("PS1='mine> '").await, Some(0));
        // A line that a command edits is no prompt.
        let editing = shell.send("read -e -p 'n? ' y; (exit 4)").await;
        assert_waits(&editing, StateKind::LineEditor);
        assert_eq!(editing.last_command, None);
        assert_prompt(&shell.send("q").await, Some(4));
        let bare = shell.send("exec bash --norc").await;
        assert_eq!(bare.wait_reason, WaitReason::StdinRead, "{bare:#?}");
        for _ in 0..2 {
            let outcome = shell.send("false").await;
            assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
            assert_eq!(outcome.last_command.unwrap().exit_code, None);
        }
    });
    shell(async |shell| {
        let stripped = shell.send("PROMPT_COMMAND=; PS1='mine> '").await;
        assert_eq!(stripped.wait_reason, WaitReason::StdinRead, "{stripped:#?}");
        let outcome = shell.send("false").await;
        assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
        assert_eq!(outcome.last_command.unwrap().exit_code, None);
        assert!(outcome.viewport.ends_with("mine> "));
    });
}

/// A16, for what every machine has.
#[test]
fn nested_shells_are_found_and_marks_work_again_outside() {
    shell(async |shell| {
        for _ in 0..3 {
            let nested = shell.send("bash --norc -i").await;
            assert_eq!(nested.wait_reason, WaitReason::StdinRead, "{nested:#?}");
        }
        let inner = shell.send("echo in").await;
        assert_eq!(inner.wait_reason, WaitReason::StdinRead);
        assert_eq!(inner.last_command, None, "a nested shell's command is not the session's");
        shell.send("exit").await;
        shell.send("exit").await;
        assert_prompt(&shell.send("exit 9").await, Some(9));
    });
}

/// A18: the same silence, told from work by what the program waits for.
#[test]
fn a_server_is_inferred_idle_and_named() {
    shell(async |shell| {
        let serving = shell.send("python3 -m http.server 0 --bind 127.0.0.1").await;
        let state = serving.state.unwrap();
        assert_eq!(serving.wait_reason, WaitReason::InferredIdle);
        assert_eq!((state.kind, state.busy), (StateKind::Running, Some(Busy::Network)));
        assert!(state.foreground.unwrap().command.starts_with("python3"));
        shell.signal(terminal::Signal::Interrupt).await.unwrap();
        let ended = shell.type_only("").await;
        assert_eq!(ended.wait_reason, WaitReason::StdinRead, "{ended:#?}");
    });
}

/// A19
#[test]
fn a_silent_computation_is_not_idle() {
    shell(async |shell| {
        let command = "python3 -c 'import time; t = time.monotonic() + 1.5\nwhile time.monotonic() < t: pass'";
        assert_prompt(&shell.send(command).await, Some(0));
        assert_prompt(
            &shell.send("bash -c 'bash -c \"sleep 1.2\"; true'; touch tree").await,
            Some(0),
        );
        assert!(shell.path("tree").exists());
    });
}

#[test]
fn a_syntax_error_has_a_status_and_an_empty_line_none() {
    shell(async |shell| {
        let wrong = shell.send("echo )").await;
        let command = wrong.last_command.unwrap();
        assert_eq!((command.exit_code, command.duration_ms), (Some(2), 0));
        // The status stays 2 for a while, and says nothing of lines that ran nothing.
        for quiet in ["", "  ", "# a comment", "abc\u{15}"] {
            assert_eq!(shell.send(quiet).await.last_command, None, "{quiet:?}");
        }
        assert_eq!(shell.type_only("abc\u{3}").await.last_command, None);
        let mixed = shell.send("true\necho )").await;
        assert_eq!(mixed.last_command.unwrap().exit_code, Some(2), "of several the last");
        assert_prompt(&shell.send("cd /; (exit 7)").await, Some(7));
        let moved = shell.send("true").await.last_command.unwrap();
        assert_eq!(moved.cwd.as_deref(), Some(std::path::Path::new("/")));
    });
}

/// A job that bash stops is no command that ended; `fg` takes it up again.
#[test]
fn a_stopped_job_gives_the_prompt_back() {
    shell(async |shell| {
        assert_waits(&shell.send("cat").await, StateKind::Line);
        let stopped = shell.type_only("\u{1a}").await;
        assert_prompt(&stopped, None);
        assert_prompt(&shell.send("false").await, Some(1));
        assert_waits(&shell.send("fg").await, StateKind::Line);
        assert_prompt(&shell.type_only("\u{4}").await, Some(0));
    });
}

/// The same when it is stopped between two sends.
#[test]
fn a_job_that_was_stopped_has_not_ended() {
    shell(async |shell| {
        assert_waits(&shell.send("cat").await, StateKind::Line);
        shell.signal(terminal::Signal::Stop).await.unwrap();
        assert_prompt(&shell.send("").await, None);
        assert_prompt(&shell.send("(exit 3)\n(exit 4)").await, Some(4));
        let again = shell.send("fg").await;
        assert_waits(&again, StateKind::Line);
        assert_eq!(again.last_command, None);
        assert_prompt(&shell.type_only("\u{4}").await, Some(0));
    });
}

/// What follows a stop goes to the shell, however soon.
#[test]
fn what_is_typed_after_a_stop_is_not_for_who_stops() {
    shell(async |shell| {
        for n in 0..10 {
            assert_waits(&shell.send("cat > eaten").await, StateKind::Line);
            shell.signal(terminal::Signal::Stop).await.unwrap();
            assert_prompt(&shell.send(&format!("(exit {n})")).await, Some(n));
            shell.send("kill -9 %1; wait").await;
            assert_eq!(std::fs::read_to_string(shell.path("eaten")).unwrap(), "");
        }
        // Who does not stop gets what is typed.
        let deaf = "python3 -c 'import signal; signal.signal(20, signal.SIG_IGN); print(input())'";
        assert_waits(&shell.send(deaf).await, StateKind::Line);
        shell.signal(terminal::Signal::Stop).await.unwrap();
        let answered = shell.send("hello").await;
        assert_prompt(&answered, Some(0));
        assert!(answered.viewport.contains("\nhello\n"), "{answered:#?}");
    });
}

/// Hooks that a user has taken apart: what ran is not known, and that something ran is.
#[test]
fn a_shell_that_marks_no_more_than_its_prompts_gives_no_status() {
    let unknown = |outcome: &terminal::SendOutcome| {
        assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
        assert_eq!(
            outcome.last_command.as_ref().map(|it| it.exit_code),
            Some(None),
            "{outcome:#?}"
        );
    };
    shell(async |shell| {
        shell.send("PROMPT_COMMAND=; PS0=").await;
        for command in ["false", "sleep .1", "true"] {
            unknown(&shell.send(command).await);
        }
        for nothing in ["", "# a comment", "abc\u{15}"] {
            assert_eq!(shell.send(nothing).await.last_command, None, "{nothing:?}");
        }
        assert_eq!(shell.type_only("abc\u{3}").await.last_command, None);
    });
    // Its messages go to a file, and its prompts with them.
    shell(async |shell| {
        unknown(&shell.send("exec 2> messages").await);
        unknown(&shell.send("false").await);
        let outcome = shell.send("echo out").await;
        unknown(&outcome);
        assert!(outcome.viewport.contains("out\n"), "{outcome:#?}");
        assert_eq!(shell.send("").await.last_command, None);
        assert_waits(&shell.send("read x").await, StateKind::Line);
        shell.send("y").await;
        shell.send("exec 2> /dev/tty").await;
        assert_prompt(&shell.send("(exit 5)").await, Some(5));
    });
}

/// An interrupt at the prompt is no command, whatever ran before it.
#[test]
fn an_interrupt_at_the_prompt_has_no_status() {
    shell(async |shell| {
        assert_prompt(&shell.type_only("(exit 3)\n\u{3}").await, Some(3));
        assert_prompt(&shell.type_only("(exit 4)\nabc\u{3}").await, Some(4));
    });
}

#[test]
fn the_command_with_which_the_shell_ends_has_no_status_of_its_own() {
    for text in ["set -e\nfalse\necho no", "echo a\nexit 7"] {
        shell(async |shell| {
            let ended = shell.send(text).await;
            assert_eq!(ended.wait_reason, WaitReason::SessionExit);
            assert_eq!(ended.last_command, None, "{ended:#?}");
        });
    }
}

/// Lines for which nobody waited before the time was over are kept, not typed blindly: a secret
/// among them would be shown.
#[test]
fn lines_that_nobody_waited_for_come_first_in_the_next_send() {
    bench("{ timeoutMs: 700 }", async |bench| {
        let shell = bench.open().await;
        let text = "sleep 1\nread -s secret\nhunter2\necho ${#secret}";
        let waiting = shell.send(text).await;
        assert_eq!(waiting.wait_reason, WaitReason::Timeout);
        let mut rest = shell.type_only("").await;
        while rest.wait_reason == WaitReason::Timeout {
            rest = shell.type_only("").await;
        }
        assert_prompt(&rest, Some(0));
        assert!(rest.viewport.ends_with("\n7\ndsh> "), "{rest:?}");
        assert!(!shell.read(0, 500).await.text.contains("hunter2"));
        assert!(!rest.echoed);
    });
}

#[test]
fn a_prompt_made_read_only_does_not_end_a_strict_shell() {
    shell(async |shell| {
        shell.send("readonly PS1").await;
        assert_prompt(&shell.send("set -eu").await, Some(0));
        assert_prompt(&shell.send("true").await, Some(0));
    });
}

/// A shell whose hooks are not known is used as it is.
#[test]
fn another_shell_is_found_by_the_kernel_alone() {
    bench("{ shellPath: /bin/sh, shellArgs: ['-i'] }", async |bench| {
        let shell = bench.open().await;
        assert!(!shell.spawned.motd.contains("__dsh"), "{:?}", shell.spawned.motd);
        let outcome = shell.send("echo hi").await;
        assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:?}");
        assert!(outcome.viewport.starts_with("echo hi\nhi\n"), "{outcome:?}");
    });
}

/// Nobody's history is read, cut or written.
#[test]
fn a_session_has_no_history_file() {
    shell(async |shell| {
        assert_eq!(shell.run("echo \"[$HISTFILE]\"", 0).await, "[]\n");
        assert_eq!(shell.run("env | grep -c dsh=", 1).await, "0\n", "the nonce is not exported");
    });
}

#[test]
fn the_absolute_bound_ends_a_wait_and_the_next_send_goes_on() {
    bench("{ timeoutMs: 400 }", async |bench| {
        let shell = bench.open().await;
        // C12: what was printed so far is in the reply.
        let waiting = shell.send("echo before; sleep 1; echo after").await;
        assert_eq!(waiting.wait_reason, WaitReason::Timeout);
        assert!(waiting.viewport.contains("\nbefore\n"), "{waiting:?}");
        let state = waiting.state.unwrap();
        assert_eq!((state.kind, state.busy), (StateKind::Running, Some(Busy::Sleeping)));
        let mut rest = shell.type_only("").await;
        let mut text = rest.viewport.clone();
        while rest.wait_reason == WaitReason::Timeout {
            rest = shell.type_only("").await;
            text += &rest.viewport;
        }
        assert_prompt(&rest, Some(0));
        assert_eq!(text, "after\ndsh> ");
    });
}

/// Tracing shows the commands of the session, not the hooks, and not the nonce.
#[test]
fn a_traced_shell_shows_only_its_own_commands() {
    shell(async |shell| {
        assert_prompt(&shell.send("set -x").await, Some(0));
        assert_eq!(shell.run("echo hi", 0).await, "+ echo hi\nhi\n");
        assert_eq!(shell.run("set +x", 0).await, "+ set +x\n");
        assert_eq!(shell.run("echo err >&2", 0).await, "err\n", "what was closed is open again");
    });
}
