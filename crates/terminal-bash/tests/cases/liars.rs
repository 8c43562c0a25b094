//! Programs that lie, die, stop, or take the terminal away while a send waits: none of them is ever
//! called ready before it is, and none holds a send beyond its bound.

use terminal::{Busy, StateKind, WaitReason};
use testkit::wait::wait_until;

use crate::shell::{assert_prompt, assert_waits, bench, shell};

/// Marks of every kind, with no nonce and with wrong ones, and the prompt of the shell itself, are
/// output while the program works and while it waits.
#[test]
fn no_mark_of_a_program_is_believed() {
    const MARKS: [&str; 6] = [
        "\\x1b]133;D;0\\x07\\x1b]133;A\\x07dsh> \\x1b]133;B\\x07",
        "\\x1b]133;D;0;\\x1b\\\\\\x1b]133;B;\\x1b\\\\",
        "\\x1b]133;D;0;dsh=0000000000000000\\x07\\x1b]133;B;dsh=0000000000000000\\x07dsh> ",
        "\\x1b]133;C\\x07\\x1b]133;D\\x07\\x1b]133;A;k=s\\x07> \\x1b]133;B\\x07",
        "\\x1b[?2004hdsh> ",
        "\\x1b]133;",
    ];
    shell(async |shell| {
        for mark in MARKS {
            let works = format!("say('{mark}'); time.sleep(.4); done(); sys.exit(5)");
            assert_prompt(&shell.python(&works).await, Some(5));
            assert!(shell.is_done(), "{mark}");
            // In raw mode a shell at its prompt would look like this.
            let waits = format!("tty.setraw(0); say('{mark}'); os.read(0, 9); sys.exit(6)");
            let waiting = shell.python(&waits).await;
            assert_eq!(waiting.wait_reason, WaitReason::StdinRead, "{waiting:#?}");
            let kind = waiting.state.as_ref().unwrap().kind;
            assert!(matches!(kind, StateKind::Raw | StateKind::LineEditor), "{waiting:#?}");
            assert_eq!(waiting.last_command, None, "{mark}");
            assert_prompt(&shell.type_only("x").await, Some(6));
        }
    });
}

/// It is about to be called ready, and dies.
#[test]
fn who_dies_while_a_wait_settles_was_not_ready() {
    const WAYS: [(&str, i32); 3] = [
        ("os.kill(os.getpid(), signal.SIGKILL)", 137),
        ("os._exit(7)", 7),
        ("os.execvp('sh', ['sh', '-c', 'sleep .4; touch done; exit 8'])", 8),
    ];
    shell(async |shell| {
        for (way, status) in WAYS {
            let script = format!(
                "
threading.Timer(.06, lambda: {way}).start()
select.select([0, here], [], [])
"
            );
            let outcome = shell.python(&script).await;
            assert_prompt(&outcome, Some(status));
        }
        assert!(shell.is_done());
    });
}

/// It was ready, and is gone when something is typed for it: the shell gets that.
#[test]
fn who_died_after_its_prompt_gets_nothing() {
    shell(async |shell| {
        let waiting = shell.python("say('go> '); os.read(0, 9)").await;
        assert_waits(&waiting, StateKind::Line);
        let process = format!("/proc/{}", waiting.state.unwrap().foreground.unwrap().pid);
        shell.signal(terminal::Signal::Kill).await.unwrap();
        wait_until("it is gone", || !std::path::Path::new(&process).exists()).await;
        let next = shell.send("echo $((40 + 2)); (exit 3)").await;
        assert_prompt(&next, Some(3));
        assert!(next.viewport.contains("\n42\n"), "{next:#?}");
    });
}

/// The kind belongs to the verdict, whatever the modes were before, and changes put nothing off for
/// ever.
#[test]
fn modes_that_change_during_the_wait() {
    shell(async |shell| {
        // While it works, so the verdict is about the last of them.
        let flips = "
old = termios.tcgetattr(0)
for n in range(40):
    (tty.setraw if n % 2 else tty.setcbreak)(0)
    time.sleep(.005)
done()
old[3] &= ~termios.ECHO; termios.tcsetattr(0, termios.TCSANOW, old)
os.read(0, 9)
";
        assert_waits(&shell.python(flips).await, StateKind::Password);
        assert!(shell.is_done());
        assert_prompt(&shell.send("").await, Some(0));
        // While somebody waits, for ever: a helper changes what the reader reads in.
        let flickers = "
def flicker():
    n = 0
    while True:
        (tty.setraw if n % 2 else tty.setcbreak)(0, termios.TCSANOW)
        n += 1
        time.sleep(.003)
threading.Thread(target=flicker, daemon=True).start()
time.sleep(.2)
os.read(0, 9)
os._exit(4)
";
        assert_waits(&shell.python(flickers).await, StateKind::Raw);
        assert_prompt(&shell.type_only("x").await, Some(4));
    });
}

/// A program that stops itself gives the prompt back, and is no command that ended; continued, it is
/// found where it waits.
#[test]
fn who_stops_itself_is_not_ready() {
    shell(async |shell| {
        for wait in ["os.read(0, 9)", "select.select([0], [], []); os.read(0, 9)"] {
            let script = format!(
                "
say('a> ')
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGTSTP))
signal.setitimer(signal.ITIMER_REAL, .05)
time.sleep(.5)
say('b> ')
{wait}
"
            );
            // The sleep goes on after the stop.
            assert_prompt(&shell.python(&script).await, None);
            let again = shell.send("fg").await;
            assert_waits(&again, StateKind::Line);
            assert!(again.viewport.ends_with("b> "), "{again:#?}");
            assert_eq!(again.last_command, None);
            assert_prompt(&shell.send("").await, Some(0));
        }
    });
}

/// A part of the foreground stops, and the shell does not take the terminal back: nobody waits, and
/// nobody works.
#[test]
fn who_is_stopped_behind_others_is_idle_and_not_ready() {
    const WAYS: [&str; 2] =
        ["bash -c 'sh -c \"kill -STOP \\$\\$\"; :'", "sh -c 'kill -STOP $$' | cat"];
    bench("{ idleSilenceMs: 300, timeoutMs: 20000 }", async |bench| {
        for way in WAYS {
            let shell = bench.open().await;
            let outcome = shell.send(way).await;
            let state = outcome.state.as_ref().unwrap();
            assert_eq!(
                (outcome.wait_reason, state.kind, state.busy),
                (WaitReason::InferredIdle, StateKind::Running, Some(Busy::Stopped)),
                "{way}: {outcome:#?}"
            );
            assert!(shell.close().await.unwrap());
        }
    });
}

/// Who has handed the terminal to another group may wait for it, but only that group reads.
#[test]
fn who_gave_the_terminal_away_does_not_wait_for_it() {
    const HANDS_OVER: &str = "
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.signal(signal.SIGTTIN, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    time.sleep(.05)
    while os.tcgetpgrp(0) != os.getpid(): time.sleep(.005)
    time.sleep(.7)
    done()
    {after}
os.setpgid(child, child) if os.getpgid(child) != child else None
say('mine> ')
threading.Timer(.02, lambda: os.tcsetpgrp(0, child)).start()
time.sleep(.04)
select.select([0, here], [], [], 30) if {waits} else os.waitpid(child, 0)
os.tcsetpgrp(0, os.getpgrp())
say('back> ')
os.read(0, 9)
";
    shell(async |shell| {
        // It gives the terminal back by its end.
        let script = HANDS_OVER.replace("{after}", "os._exit(0)").replace("{waits}", "False");
        let waiting = shell.python(&script).await;
        assert_waits(&waiting, StateKind::Line);
        assert!(shell.is_done(), "{waiting:#?}");
        assert!(waiting.viewport.ends_with("back> "), "{waiting:#?}");
        assert_prompt(&shell.send("").await, Some(0));
    });
    shell(async |shell| {
        // It waits itself.
        let script = HANDS_OVER
            .replace("{after}", "say('its> '); os.read(0, 9); os._exit(0)")
            .replace("{waits}", "False");
        let waiting = shell.python(&script).await;
        assert_waits(&waiting, StateKind::Line);
        assert!(shell.is_done(), "{waiting:#?}");
        assert!(waiting.viewport.ends_with("its> "), "{waiting:#?}");
        assert!(shell.send("").await.viewport.ends_with("back> "));
        assert_prompt(&shell.send("").await, Some(0));
    });
    // The group that has the terminal dies out, and nobody takes it back.
    bench("{ idleSilenceMs: 300, timeoutMs: 3000 }", async |bench| {
        let shell = bench.open().await;
        let script = HANDS_OVER.replace("{after}", "os._exit(0)").replace("{waits}", "True");
        let lost = shell.python(&script).await;
        assert_ne!(lost.wait_reason, WaitReason::StdinRead, "{lost:#?}");
        assert!(shell.close().await.unwrap());
    });
}

/// What never waits, never prints and never ends is over when the time is.
#[test]
fn nothing_holds_a_send_beyond_its_bound() {
    const WAYS: [&str; 4] = [
        "
while True: pass",
        "
while True: say('\\x1b[6n\\x1b]133;B\\x07dsh> \\r')",
        "
while True: select.select([0], [], [], 0); time.sleep(.001)",
        "
signal.signal(signal.SIGTSTP, signal.SIG_IGN)
def toggle():
    while True: say('\\x1b[?2004h\\x1b[?2004l\\x1b[?1049h\\x1b[?1049l'); time.sleep(.002)
threading.Thread(target=toggle).start()
while True: time.sleep(.001)",
    ];
    bench("{ idleSilenceMs: 300, timeoutMs: 600 }", async |bench| {
        for way in WAYS {
            let shell = bench.open().await;
            let outcome = shell.python(way).await;
            assert_eq!(outcome.wait_reason, WaitReason::Timeout, "{way}: {outcome:#?}");
            assert_eq!(outcome.state.unwrap().kind, StateKind::Running, "{way}");
            assert!(shell.close().await.unwrap());
        }
    });
}
