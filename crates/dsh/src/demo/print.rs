//! Calls and results as a person would like to read them.
//!
//! Guarantees: plain text in a pipe, colours only where they were asked for; nothing of a result
//! can move the reader's cursor or change colours.

use std::io::{self, Write};

use serde_json::Value;
use tools::{CallIntent, ToolRegistry, ToolResult};

use super::script::Call;

/// Writes to `W`.
pub(crate) struct Printer<W> {
    out: W,
    color: bool,
}

#[derive(Clone, Copy)]
enum Ink {
    Bold,
    Dim,
    Green,
    Red,
}

impl<W: Write> Printer<W> {
    pub(crate) fn new(out: W, color: bool) -> Self {
        Self { out, color }
    }

    /// What the next step is about.
    pub(crate) fn title(&mut self, title: &str) -> io::Result<()> {
        let title = self.ink(Ink::Bold, title);
        writeln!(self.out, "{title}")
    }

    /// A call that begins.
    pub(crate) fn call(&mut self, tools: &ToolRegistry, call: &Call) -> io::Result<()> {
        let line = match tools.present_call(call.tool, &call.arguments) {
            Some(CallIntent::Terminal { title, description }) => {
                format!("> {} · {description} · {title}", call.tool)
            }
            _ => format!("> {}{}", call.tool, arguments(&call.arguments)),
        };
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    /// The result of the call printed last.
    pub(crate) fn result(
        &mut self,
        tools: &ToolRegistry,
        call: &Call,
        result: &ToolResult,
    ) -> io::Result<()> {
        let text = match tools.present_result(call.tool, &call.arguments, result) {
            Some(tools::ResultIntent::Terminal { output, .. }) => output,
            _ => result.text(),
        };
        for line in text.lines() {
            let line: String = line.chars().map(visible).collect();
            let facts = line.starts_with('[') && line.ends_with(']');
            let line = match (result.is_error(), facts) {
                (true, _) => self.ink(Ink::Red, &line),
                (false, true) => self.ink(Ink::Dim, &line),
                (false, false) => line,
            };
            writeln!(self.out, "  {line}")?;
        }
        writeln!(self.out)?;
        self.out.flush()
    }

    /// The result of a call that others were printed after.
    pub(crate) fn late_result(
        &mut self,
        tools: &ToolRegistry,
        call: &Call,
        result: &ToolResult,
    ) -> io::Result<()> {
        writeln!(self.out, "< {}", call.tool)?;
        self.result(tools, call, result)
    }

    /// The end of a script that went as it should.
    pub(crate) fn passed(&mut self, steps: usize, agent: &str) -> io::Result<()> {
        let line = self.ink(Ink::Green, &format!("{steps} steps, each as expected"));
        writeln!(self.out, "{line} (logged as session {agent})")?;
        self.out.flush()
    }

    /// The end of a script that did not.
    pub(crate) fn failed(&mut self, step: usize, title: &str, wrong: &str) -> io::Result<()> {
        let line = self.ink(Ink::Red, &format!("step {step} ({title}) went wrong"));
        writeln!(self.out, "{line}: {wrong}")?;
        self.out.flush()
    }

    fn ink(&self, ink: Ink, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Bold => 1,
            Ink::Dim => 2,
            Ink::Red => 31,
            Ink::Green => 32,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// ` key=value` for each argument.
fn arguments(arguments: &Value) -> String {
    let Some(arguments) = arguments.as_object() else { return String::new() };
    arguments
        .iter()
        .map(|(name, value)| match value.as_str() {
            Some(text) if !text.contains(|c: char| c.is_whitespace() || c.is_control()) => {
                format!(" {name}={text}")
            }
            _ => format!(" {name}={value}"),
        })
        .collect()
}

fn visible(c: char) -> char {
    if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tools::ContentBlock;

    use super::*;

    #[test]
    fn colours_only_where_asked_for_and_no_escapes_from_results() {
        let call =
            Call { tool: "t", arguments: json!({ "a": "b", "c": "d e", "n": 4 }), expects: vec![] };
        let content = vec![ContentBlock::Text { text: "x\u{1b}[2Jy\n[exit: 0]".to_owned() }];
        let result = ToolResult { content, value: None, error: None };
        let scope = dsh_core::Scope::root("test");
        let tools = ToolRegistry::new(&scope, || None).unwrap();
        let shown = |color| {
            let mut out = Vec::new();
            let mut printer = Printer::new(&mut out, color);
            printer.title("Title").unwrap();
            printer.call(&tools, &call).unwrap();
            printer.result(&tools, &call, &result).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(false), "Title\n> t a=b c=\"d e\" n=4\n  x\u{fffd}[2Jy\n  [exit: 0]\n\n");
        assert!(shown(true).starts_with("\u{1b}[1mTitle\u{1b}[0m\n"));
        assert_eq!(shown(true).matches("\u{1b}[2J").count(), 0);
    }
}
