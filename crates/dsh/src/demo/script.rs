//! What the demonstration does, step by step, and what each step must give.
//!
//! A new host gives its first session the id `pty-1`, so the script is plain data.

use serde_json::{Value, json};

/// One step.
pub(crate) struct Step {
    /// For the reader.
    pub(crate) title: &'static str,
    /// What happens.
    pub(crate) act: Act,
}

/// What happens in a step.
pub(crate) enum Act {
    /// One call.
    Call(Call),
    /// A call, and another one while the first still waits.
    During {
        /// The call that waits.
        waiting: Call,
        /// A line of its output after which the other call is made.
        after_line: &'static str,
        /// The other call.
        then: Call,
    },
}

/// One call and what it must give.
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    pub(crate) expects: Vec<Expect>,
}

/// A condition on a result.
pub(crate) enum Expect {
    /// The structured value has this at this JSON pointer.
    Value(&'static str, Value),
    /// One line of the text is this.
    Line(&'static str),
    /// The text contains this.
    Text(&'static str),
}

const SESSION: &str = "pty-1";

fn call(tool: &'static str, arguments: Value, expects: Vec<Expect>) -> Call {
    Call { tool, arguments, expects }
}

/// A send that must end because somebody waits for input again.
fn send(text: &str, mut expects: Vec<Expect>) -> Call {
    expects.insert(0, Expect::Value("/waitReason", json!("stdin_read")));
    call("terminal_send", json!({ "sessionId": SESSION, "text": text }), expects)
}

fn exit(code: i32) -> Expect {
    Expect::Value("/lastCommand/exitCode", json!(code))
}

/// The steps, in order.
pub(crate) fn steps() -> Vec<Step> {
    let step = |title, it| Step { title, act: Act::Call(it) };
    let opened = Expect::Value("/sessionId", json!(SESSION));
    let running = Expect::Value("/0/status/kind", json!("running"));
    vec![
        step(
            "Open a session",
            call("terminal_open", json!({ "type": "shell", "name": "demo" }), vec![opened]),
        ),
        step("Change the shell's state", send("cd / && export GREETING=hello", vec![exit(0)])),
        step(
            "It is still there, and the exit status is known",
            send(
                r#"echo "$GREETING from $PWD"; false"#,
                vec![Expect::Line("hello from /"), exit(1)],
            ),
        ),
        step("Start an interpreter", send("python3", vec![Expect::Text(">>>")])),
        step("Ask it something", send("print(2+2)", vec![Expect::Line("4")])),
        step(
            "Let it ask for input",
            send("name = input('name? ')", vec![Expect::Text("\nname? ")]),
        ),
        step("Answer", send("Ada", vec![])),
        step("See what it read", send("print('hello,', name)", vec![Expect::Line("hello, Ada")])),
        step("Leave it", send("exit()", vec![exit(0)])),
        Step {
            title: "Interrupt a command that is still running",
            act: Act::During {
                // The program itself says that it runs: a signal to a child that the shell has only
                // just forked can get lost.
                waiting: send("sh -c 'echo sleeping; exec sleep 100'", vec![exit(130)]),
                after_line: "sleeping",
                then: call(
                    "terminal_signal",
                    json!({ "sessionId": SESSION, "signal": "SIGINT" }),
                    vec![Expect::Value("/delivered", json!(true))],
                ),
            },
        },
        step(
            "Read back what was shown",
            call(
                "terminal_read",
                json!({ "sessionId": SESSION, "count": 4 }),
                vec![Expect::Line("sleeping"), Expect::Value("/lineEnd", json!(4))],
            ),
        ),
        step("List the sessions", call("terminal_list", json!({}), vec![running])),
        step(
            "Close it",
            call(
                "terminal_close",
                json!({ "sessionId": SESSION }),
                vec![Expect::Value("/outcome", json!("closed"))],
            ),
        ),
        step(
            "Nothing is left",
            call("terminal_list", json!({}), vec![Expect::Value("", json!([]))]),
        ),
    ]
}
