//! The hooks of bash beside those of the user.

use terminal::{SendOutcome, StateKind, WaitReason};

use crate::shell::{assert_prompt, bench, shell};

/// A command ended, and nobody can know how.
#[track_caller]
fn assert_untold(outcome: &SendOutcome) {
    assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
    let command = outcome.last_command.as_ref();
    assert_eq!(command.map(|it| it.exit_code), Some(None), "{outcome:#?}");
}

#[test]
fn a_debug_trap_runs_for_the_users_commands_and_shows_no_hook() {
    shell(async |shell| {
        shell.send("trap 'echo debug' DEBUG").await;
        let traced = shell.send("sh -c 'exit 3'").await;
        assert_prompt(&traced, Some(3));
        assert_eq!(traced.viewport, "sh -c 'exit 3'\ndebug\ndsh> ");
        shell.send("trap - DEBUG; set -x").await;
        let traced = shell.send("true").await;
        assert_prompt(&traced, Some(0));
        assert_eq!(traced.viewport, "true\n+ true\ndsh> ");
    });
}

/// No listing of the shell tells the nonce, and no program inherits it.
#[test]
fn a_function_and_the_environment_tell_nothing_of_the_marks() {
    shell(async |shell| {
        let listed = shell.run("declare -f; echo \"$PROMPT_COMMAND\"", 0).await;
        assert!(listed.contains("__dsh_prompt") && !listed.contains("dsh="), "{listed}");
        let inherited = "env | grep -ca 'dsh=\\|133;\\|__dsh'";
        for before in ["true", "set -a", "export PS0 PS1 PS2 PROMPT_COMMAND", "PS1='mine> '"] {
            shell.send(before).await;
            assert_eq!(shell.run(inherited, 1).await, "0\n", "{before}");
        }
        shell.send("set +a").await;
        assert_eq!(shell.run("python3 -m venv --without-pip v && . v/bin/activate", 0).await, "");
        assert_eq!(shell.run(inherited, 1).await, "0\n");
        assert_prompt(&shell.send("(exit 5)").await, Some(5));
        assert_prompt(&shell.send("deactivate; (exit 6)").await, Some(6));
        assert_eq!(shell.run(inherited, 1).await, "0\n");
        shell.send("PS1='two\\nlines> '").await;
        assert_eq!(shell.run("true", 0).await, "");
    });
}

#[test]
fn a_ps0_of_the_user_is_shown() {
    shell(async |shell| {
        shell.send("PS0='run\\n'").await;
        for _ in 0..2 {
            assert_eq!(shell.run("echo ran", 0).await, "run\nran\n");
        }
        assert_prompt(&shell.send("unset PS0; set -u").await, Some(0));
        assert_eq!(shell.run("echo ran", 0).await, "ran\n");
    });
}

/// Whatever a start-up file has set: a strict shell, prompts, hooks as a text or as a list.
#[test]
fn the_users_own_hooks_go_on() {
    for (hooks, shown) in [
        ("PROMPT_COMMAND='echo one; false'", "one\n"),
        ("PROMPT_COMMAND=('echo one' 'PS1=mine')", "one\n"),
        ("PROMPT_COMMAND=(); PROMPT_COMMAND[3]='echo one'", "one\n"),
        ("PROMPT_COMMAND='echo one'; readonly x=1; set -u", "one\n"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let start = folder.path().join("rc");
        std::fs::write(&start, format!("PS1='\\u\\n> '; HISTFILE=~/.history; {hooks}\n")).unwrap();
        let args = format!("shellArgs: ['--noprofile', '--rcfile', '{}', '-i']", start.display());
        bench(&format!("{{ idleSilenceMs: 300, {args} }}"), async |bench| {
            let shell = bench.open().await;
            assert!(shell.spawned.motd.ends_with("\ndsh> "), "{:?}", shell.spawned.motd);
            for status in [0, 3, 4] {
                let outcome = shell.send(&format!("(exit {status})")).await;
                assert_prompt(&outcome, Some(status));
                assert_eq!(outcome.viewport, format!("(exit {status})\n{shown}dsh> "), "{hooks}");
            }
            assert_eq!(shell.run("echo \"<$HISTFILE>\"", 0).await, format!("<>\n{shown}"));
        });
    }
}

/// Without the mark of a start nobody knows how a command ended, but that one ran is known.
#[test]
fn a_command_without_marks_has_an_unknown_status() {
    shell(async |shell| {
        shell.send("PROMPT_COMMAND=; PS0=").await;
        for command in ["false", "true", "# a comment\nfalse"] {
            assert_untold(&shell.send(command).await);
        }
        for quiet in ["", "  ", "# a comment", "abc\u{15}", "# one\n# two"] {
            assert_eq!(shell.send(quiet).await.last_command, None, "{quiet:?}");
        }
        assert_eq!(shell.type_only("abc\u{3}").await.last_command, None);
        assert_eq!(shell.type_only("for i in 1\n\u{3}").await.last_command, None);
    });
}

/// bash writes its prompts, and with them the marks, to standard error.
#[test]
fn a_shell_whose_standard_error_is_elsewhere_has_no_status_and_marks_no_file() {
    for term in ["xterm-256color", "dumb"] {
        bench(&format!("{{ idleSilenceMs: 300, term: {term} }}"), async |bench| {
            let shell = bench.open().await;
            assert_untold(&shell.send("exec 2>err").await);
            for command in ["false", "echo out", "ls /nowhere"] {
                let outcome = shell.send(command).await;
                assert_untold(&outcome);
                assert_eq!(outcome.state.unwrap().kind, StateKind::Prompt);
            }
            let asked = shell.send("read x").await;
            assert_eq!((asked.wait_reason, asked.last_command), (WaitReason::StdinRead, None));
            assert_untold(&shell.send("value").await);
            let back = shell.send("exec 2>/dev/tty").await;
            assert_eq!(back.wait_reason, WaitReason::StdinRead);
            assert_prompt(&shell.send("(exit 3)").await, Some(3));
            let written = std::fs::read_to_string(shell.path("err")).unwrap();
            assert!(written.contains("/nowhere") && !written.contains("dsh="), "{written:?}");
        });
    }
}
