//! Programs that look like they wait while they work, and that look busy while they wait.
//!
//! A rule that once cost a wrong verdict, and the test with a program of our own that breaks without
//! it. The tables and properties of the judge alone are in `tests/readiness.rs`, the evidence's in
//! `subprocess/tests/probe.rs`.
//!
//! | rule | test |
//! |---|---|
//! | a number is not the terminal: descriptor 0 may be something else, another one may be it | `what_is_read_is_no_matter_of_its_number` |
//! | only interest in input is a wait for it | `who_waits_for_no_input_does_not_wait_for_it` |
//! | who waits may be outside the foreground group, and works outside it, too | `a_reader_outside_the_group_is_found_each_time`, `relays::a_reader_in_a_session_of_its_own_is_found` |
//! | a poller in a thread of its own waits for the terminal all the time | `a_poller_speaks_for_nobody` |
//! | a reader in a thread of its own does, too; its line editor tells | `a_reading_helper_speaks_when_its_editor_is_open` |
//! | a wait behind no text, of who had a prompt, is none at its prompt | `who_had_a_prompt_is_not_ready_without_it` |
//! | an editor that took a line into its own queue has not acted upon it | `a_line_that_is_queued_is_not_acted_upon` |
//! | a short wait is no patience, whatever the same call was before | `a_short_wait_is_not_known_by_a_long_one` |
//! | a bound of its own does not make a wait busy | `a_timed_read_is_found` |
//! | who has printed nothing yet may be about to begin | `who_has_printed_nothing_is_given_longer` |
//! | waking up is not work | `who_wakes_up_all_the_time_is_found` |
//! | a pulse is no end of a wait, however it answers | `a_slow_pulse_is_found` |
//! | numbers in a prompt are one prompt | `numbered_prompts_are_known` |
//! | marks are the shell's by their nonce, and prompts by the editor's modes | `liars::no_mark_of_a_program_is_believed`, `readiness::a_forged_mark_is_only_output` |
//! | modes are read again after the wait | `liars::modes_that_change_during_the_wait` |
//! | output that shows nothing puts nothing off | `output_that_shows_nothing_puts_nothing_off` in `tests/readiness.rs` |
//! | a look at some of them neither ends nor restarts what settles | `who_was_not_looked_at_is_not_idle` there |
//! | where Enter ends no line, the line is unfinished | `a_line_that_enter_does_not_end_is_unfinished` |
//! | what was typed has to be read first | `lines_typed_ahead_are_read_first` |

use terminal::{Evidence, StateKind, TerminalError, WaitReason};

use crate::shell::{Shell, assert_prompt, assert_waits, bench, shell};

const PATIENT: &str = "{ idleSilenceMs: 5000, timeoutMs: 20000 }";

/// Found at its prompt, by whatever evidence.
#[track_caller]
fn assert_found(outcome: &terminal::SendOutcome, prompt: &str) {
    assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
    assert!(outcome.viewport.ends_with(prompt), "{outcome:#?}");
}

/// Sends lines to a program that works for each of them and comes back to its prompt.
async fn assert_works_before(shell: &Shell<'_>, prompt: &str) {
    for line in ["one", "two", "three"] {
        let outcome = shell.send(line).await;
        assert!(shell.is_done(), "{line}: {outcome:#?}");
        assert_found(&outcome, prompt);
    }
}

#[test]
fn what_is_read_is_no_matter_of_its_number() {
    const ELSEWHERE: [&str; 3] = [
        // A pipe.
        "r, w = os.pipe(); os.dup2(r, 0); wake = lambda: os.write(w, b'x')",
        // Another terminal.
        "m, s = pty.openpty(); os.dup2(s, 0); wake = lambda: os.write(m, b'x\\n')",
        // A socket.
        "os.dup2(here.fileno(), 0); wake = lambda: there.send(b'x')",
    ];
    shell(async |shell| {
        for elsewhere in ELSEWHERE {
            let script = format!(
                "
say('name? ')
{elsewhere}
def work(): time.sleep(.5); done(); wake()
threading.Thread(target=work).start()
os.read(0, 9); sys.exit(3)
"
            );
            assert_prompt(&shell.python(&script).await, Some(3));
            assert!(shell.is_done(), "{elsewhere}");
        }
        for reads in ["os.read(os.dup(0), 9)", "os.read(os.open('/dev/tty', os.O_RDONLY), 9)"] {
            let script = format!("{reads}; sys.exit(4)");
            assert_waits(&shell.python(&script).await, StateKind::Line);
            assert_prompt(&shell.send("x").await, Some(4));
        }
    });
}

#[test]
fn who_waits_for_no_input_does_not_wait_for_it() {
    const WAITS: [&str; 3] = [
        "p = select.poll(); p.register(0, select.POLLERR | select.POLLHUP); p.poll(500)",
        "p = select.epoll(); p.register(0, select.EPOLLPRI); p.poll(.5)",
        "select.select([], [], [0], .5)",
    ];
    shell(async |shell| {
        for wait in WAITS {
            let script = format!("say('name? '); {wait}; done(); sys.exit(3)");
            assert_prompt(&shell.python(&script).await, Some(3));
            assert!(shell.is_done(), "{wait}");
        }
    });
}

#[test]
fn a_reader_outside_the_group_is_found_each_time() {
    shell(async |shell| {
        let line = "setsid -w bash -c 'while read x; do sleep .2; touch done; echo \"$x!\"; done'";
        assert_eq!(shell.send(line).await.wait_reason, WaitReason::StdinRead);
        assert_works_before(shell, "!\n").await;
        assert_prompt(&shell.type_only("\u{4}").await, Some(0));
    });
}

/// As in a virtual machine whose poller has the terminal, timers and sockets in one set for the whole
/// life of the process.
#[test]
fn a_poller_speaks_for_nobody() {
    const MACHINE: &str = "
lines, come = [], threading.Condition()
def poll():
    p = select.epoll()
    p.register(0, select.EPOLLIN); p.register(here, select.EPOLLIN)
    while True:
        p.poll(10)
        line = os.read(0, 999)
        with come: lines.append(line); come.notify()
threading.Thread(target=poll, daemon=True).start()
n = 0
while True:
    n += 1
    say('vm(%d)> ' % n)
    with come:
        while not lines: come.wait()
        line = lines.pop()
    if line == b'quit\\n': os._exit(0)
    (time.sleep if n % 2 else lambda t: [None for _ in iter(lambda e=time.time() + t: time.time() > e, True)])(.6)
    done()
    say('acted\\n')
";
    shell(async |shell| {
        assert_found(&shell.python(MACHINE).await, "vm(1)> ");
        assert_works_before(shell, ")> ").await;
        assert_prompt(&shell.send("quit").await, Some(0));
    });
}

#[test]
fn a_reading_helper_speaks_when_its_editor_is_open() {
    const EDITOR: &str = "
lines, come = [], threading.Condition()
tty.setcbreak(0)
def read():
    while True:
        line = os.read(0, 999)
        with come: lines.append(line); come.notify()
threading.Thread(target=read, daemon=True).start()
while True:
    say('\\x1b[?2004hj> ')
    text = b''
    while not text.endswith((b'\\r', b'\\n')):
        with come:
            while not lines: come.wait()
            text += lines.pop(0)
    say('\\x1b[?2004l\\r\\n')
    if b'quit' in text: os.system('stty sane'); os._exit(0)
    time.sleep(.6)
    done()
    say('acted\\r\\n')
";
    shell(async |shell| {
        assert_found(&shell.python(EDITOR).await, "j> ");
        assert_works_before(shell, "j> ").await;
        assert_prompt(&shell.send("quit").await, Some(0));
    });
}

/// As in a program that goes on handling events while it works: the terminal stays in the set.
#[test]
fn who_had_a_prompt_is_not_ready_without_it() {
    const LOOP: &str = "
say('ev> ')
while True:
    select.select([0, here], [], [])
    line = os.read(0, 999)
    if line == b'quit\\n': sys.exit(0)
    threading.Timer(.6, lambda: there.send(b'x')).start()
    while here not in select.select([0, here], [], [])[0]: pass
    here.recv(9)
    done()
    say('acted\\nev> ')
";
    // Such a wait is not seen to be busy, so a short silence would end it.
    bench(PATIENT, async |bench| {
        let shell = &bench.open().await;
        assert_found(&shell.python(LOOP).await, "ev> ");
        assert_works_before(shell, "ev> ").await;
        assert_prompt(&shell.send("quit").await, Some(0));
    });
}

/// It takes a line and then blinks for half a second, as an editor does that shows a bracket's partner.
#[test]
fn a_line_that_is_queued_is_not_acted_upon() {
    const BLINKS: &str = "
tty.setraw(0)
say('ed> ')
text = b''
while True:
    select.select([0, here], [], [])
    got = os.read(0, 999)
    text += got
    say(got.replace(b'\\r', b'').decode())
    if not text.endswith(b'\\r'): continue
    if text == b'quit\\r': break
    text = b''
    select.select([0], [], [], .5)
    done()
    say('\\r\\nacted\\r\\ned> ')
os.system('stty sane')
";
    bench(PATIENT, async |bench| {
        let shell = &bench.open().await;
        assert_found(&shell.python(BLINKS).await, "ed> ");
        assert_works_before(shell, "ed> ").await;
        assert_prompt(&shell.send("quit").await, Some(0));
    });
}

#[test]
fn a_short_wait_is_not_known_by_a_long_one() {
    const PULSES: &str = "
say('p> ')
while True:
    select.select([0, here], [], [], 30)
    line = os.read(0, 999)
    if line == b'quit\\n': break
    say('p> ')
    select.select([0, here], [], [], .07)
    time.sleep(.4)
    done()
    say('\\np> ')
";
    shell(async |shell| {
        assert_found(&shell.python(PULSES).await, "p> ");
        assert_works_before(shell, "p> ").await;
        assert_prompt(&shell.send("quit").await, Some(0));
    });
}

#[test]
fn a_timed_read_is_found() {
    shell(async |shell| {
        for line in ["read -t 20 -p 'timed? ' x", "read -t 20 -e -p 'timed? ' x"] {
            assert_found(&shell.send(line).await, "timed? ");
            assert_prompt(&shell.send("").await, Some(0));
        }
        // Of the shell itself, without its line editor: no command has ended by it.
        for line in ["read -n1 -t 20 -p 'timed? ' x; (exit 3)", "read -rsn1 -t 20 x; (exit 3)"] {
            let outcome = shell.send(line).await;
            assert_eq!(outcome.wait_reason, WaitReason::StdinRead, "{outcome:#?}");
            assert_eq!(outcome.last_command, None, "{outcome:#?}");
            assert_prompt(&shell.type_only("k").await, Some(3));
        }
        // By who is known by waits of another kind.
        let script = "
say('ev> ')
for n in range(6):
    if n % 2: print('got', len(select.select([0], [], [], 20)[0]))
    else: select.select([0, here], [], [])
    os.read(0, 999)
    say('ev> ')
";
        assert_found(&shell.python(script).await, "ev> ");
        for _ in 0..5 {
            assert_found(&shell.send("x").await, "ev> ");
        }
        assert_prompt(&shell.send("x").await, Some(0));
    });
}

#[test]
fn who_has_printed_nothing_is_given_longer() {
    const BEGINS: &str = "
threading.Timer(.1, lambda: there.send(b'x')).start()
while here not in select.select([0, here], [], [])[0]: pass
here.recv(9)
time.sleep(.5)
done()
say('up> ')
select.select([0, here], [], [])
";
    shell(async |shell| {
        let begun = shell.python(BEGINS).await;
        assert!(shell.is_done(), "{begun:#?}");
        assert_found(&begun, "up> ");
        assert_prompt(&shell.send("").await, Some(0));
    });
}

#[test]
fn who_wakes_up_all_the_time_is_found() {
    const WAKES: &str = "
def wake():
    while True: time.sleep(.01)
for _ in range(3): threading.Thread(target=wake, daemon=True).start()
while True:
    say('w> ')
    while not select.select([0, here], [], [], 2)[0]: pass
    if os.read(0, 999) == b'quit\\n': break
";
    shell(async |shell| {
        assert_found(&shell.python(WAKES).await, "w> ");
        for _ in 0..5 {
            assert_found(&shell.send("x").await, "w> ");
        }
        assert_prompt(&shell.send("quit").await, Some(0));
    });
}

/// In raw mode; the answer may stay on the line of the cursor.
#[test]
fn a_slow_pulse_is_found() {
    bench(PATIENT, async |bench| {
        let shell = bench.open().await;
        for prompt in ["\\r\\np> ", "p> "] {
            let script = format!(
                "
modes = termios.tcgetattr(0); tty.setraw(0)
line = b''
say('p> ')
while b'quit' not in line:
    line = b''
    while not line.endswith(b'\\r'):
        while not select.select([0], [], [], .5)[0]: pass
        line += os.read(0, 999)
    time.sleep(.3); done()
    say('{prompt}')
termios.tcsetattr(0, termios.TCSANOW, modes)
"
            );
            assert_found(&shell.python(&script).await, "p> ");
            assert_works_before(&shell, "p> ").await;
            assert_prompt(&shell.send("quit").await, Some(0));
            assert!(shell.is_done());
        }
    });
}

#[test]
fn numbered_prompts_are_known() {
    const NUMBERS: &str = "
for n in range(8, 12):
    say('In [%d]: ' % n)
    select.select([0, here], [], [])
    os.read(0, 999)
";
    shell(async |shell| {
        assert_found(&shell.python(NUMBERS).await, "In [8]: ");
        for prompt in ["In [9]: ", "In [10]: ", "In [11]: "] {
            let outcome = shell.send("x").await;
            assert_found(&outcome, prompt);
            assert_eq!(outcome.state.unwrap().evidence, Evidence::Known);
        }
        assert_prompt(&shell.send("x").await, Some(0));
    });
}

/// The wait for the second line was entered before the first was typed, as far as looks can tell.
#[test]
fn lines_typed_ahead_are_read_first() {
    const READS: &str = "
tty.setcbreak(0)
say('k> ')
for n in range(3):
    os.read(0, 1)
    time.sleep(.2)
done()
say('k> ')
os.read(0, 9)
os.system('stty sane')
";
    shell(async |shell| {
        assert_found(&shell.python(READS).await, "k> ");
        let outcome = shell.type_only("abc").await;
        assert!(shell.is_done(), "{outcome:#?}");
        assert_found(&outcome, "k> ");
        assert_prompt(&shell.type_only("x").await, Some(0));
    });
}

/// In line mode, where Enter is no end of a line, nothing was taken, although somebody waits: what was
/// typed is unread, and the line goes on, up to what the terminal keeps of one.
#[test]
fn a_line_that_enter_does_not_end_is_unfinished() {
    /// With one of its modes changed, what it reads of `x`, Enter, `y` and a newline, and what of the
    /// first two is unread.
    const DEAF: [(&str, &str, u64); 2] =
        [("new[0] &= ~termios.ICRNL", r"x\ry\n", 2), ("new[0] |= termios.IGNCR", r"xy\n", 1)];
    shell(async |shell| {
        for (mode, read, unread) in DEAF {
            let script = format!(
                "
old, new = termios.tcgetattr(0), termios.tcgetattr(0)
{mode}; termios.tcsetattr(0, termios.TCSANOW, new)
say('n> ')
line = os.read(0, 9999)
termios.tcsetattr(0, termios.TCSANOW, old)
sys.exit(3 if line == b'{read}' else len(line) % 256)
"
            );
            assert_waits(&shell.python(&script).await, StateKind::Line);
            let untaken = shell.send("x").await;
            assert_eq!(untaken.wait_reason, WaitReason::InferredIdle, "{mode}: {untaken:#?}");
            let receipt = untaken.input.map(|it| (it.accepted, it.unread));
            assert_eq!(receipt, Some((2, Some(unread))), "{mode}");
            assert_prompt(&shell.type_only("y\n").await, Some(3));

            assert_waits(&shell.python(&script).await, StateKind::Line);
            shell.send(&"x".repeat(4_000)).await;
            let line = "y".repeat(200) + "\n";
            let refused = shell.start(&line, false).unwrap().done().await;
            let bytes = 4_199 + unread;
            assert_eq!(refused, Err(TerminalError::LineTooLong { bytes, limit: 4_095 }), "{mode}");
            let whole = i32::try_from((3_999 + unread + 2) % 256).unwrap();
            assert_prompt(&shell.type_only("y\n").await, Some(whole));
        }
    });
}
