//! The conversation as the model gets it, and how it becomes smaller.
//!
//! Guarantees: each call is answered by the results right behind it, whatever is left out; the first
//! message and the last reply stay as they are; what was left out once stays out, so that the
//! beginning of one request is that of the next.

use std::ops::Range;

use model::{Message, ToolRequest};

/// What was left out of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Tool results that were replaced by a line, or cut.
    pub results: usize,
    /// Messages that went altogether.
    pub messages: usize,
    /// Bytes before.
    pub before: usize,
    /// Bytes after.
    pub after: usize,
}

#[derive(Default)]
pub(crate) struct History {
    entries: Vec<Entry>,
    /// Messages that went from behind the first.
    left_out: usize,
    bytes: usize,
}

struct Entry {
    message: Message,
    /// Its text stands for a longer one.
    shortened: bool,
}

impl Entry {
    fn is_reply(&self) -> bool {
        matches!(self.message, Message::Assistant { .. })
    }

    fn is_result(&self) -> bool {
        matches!(self.message, Message::Tool { .. })
    }
}

impl History {
    pub(crate) fn push(&mut self, message: Message) {
        self.bytes += size(&message);
        self.entries.push(Entry { message, shortened: false });
    }

    /// The messages of the next request.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let mut messages: Vec<_> = self.entries.iter().map(|it| it.message.clone()).collect();
        if self.left_out > 0 {
            messages.insert(1, Message::Notice { content: gap(self.left_out) });
        }
        messages
    }

    /// Bytes of the messages of the next request.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + if self.left_out > 0 { gap(self.left_out).len() } else { 0 }
    }

    /// Makes room where there are more than `most` bytes: a quarter more than that takes, so that
    /// the next messages do not change the beginning of the request again.
    pub(crate) fn fit(&mut self, most: usize) -> Option<Trimmed> {
        if self.bytes() <= most { None } else { self.shrink(most - most / 4) }
    }

    /// Leaves out the oldest until at most `most` bytes are left; none if nothing could be.
    pub(crate) fn shrink(&mut self, most: usize) -> Option<Trimmed> {
        let before = self.bytes();
        let mut last = self.entries.iter().rposition(Entry::is_reply).unwrap_or(0);
        let mut results = self.stub_all(0..last, most);
        let messages = self.drop_oldest(last, most);
        last -= messages;
        // Then what the model has not read yet, and the newest of that last.
        let newest = self.entries.iter().rposition(Entry::is_result).filter(|at| *at > last);
        if let Some(newest) = newest {
            results += self.stub_all(last..newest, most);
            results += usize::from(self.bytes() > most && self.cut(newest, most));
        }
        let after = self.bytes();
        (after < before).then_some(Trimmed { results, messages, before, after })
    }

    /// Replaces results by lines, as many as it takes. Returns how many.
    fn stub_all(&mut self, range: Range<usize>, most: usize) -> usize {
        range.filter(|at| self.bytes() > most && self.stub(*at)).count()
    }

    /// Replaces a result by a line that is shorter.
    fn stub(&mut self, at: usize) -> bool {
        let name = self.tool(at).unwrap_or("a tool").to_owned();
        let Some(Entry { message: Message::Tool { content, .. }, shortened }) =
            self.entries.get_mut(at)
        else {
            return false;
        };
        let line =
            format!("[this result of {name}, {} bytes, was left out to save space]", content.len());
        let saved = content.len().saturating_sub(line.len());
        if *shortened || saved == 0 {
            return false;
        }
        *content = line;
        *shortened = true;
        self.bytes -= saved;
        true
    }

    /// Cuts the oldest part of a result.
    fn cut(&mut self, at: usize, most: usize) -> bool {
        let over = self.bytes().saturating_sub(most);
        let Some(Entry { message: Message::Tool { content, .. }, shortened }) =
            self.entries.get_mut(at)
        else {
            return false;
        };
        let mark = |cut: usize| format!("[the first {cut} bytes were left out to save space]\n");
        let from = (over + mark(content.len()).len()).min(content.len());
        let from = content.ceil_char_boundary(from);
        let rest = format!("{}{}", mark(from), &content[from..]);
        if rest.len() >= content.len() {
            return false;
        }
        self.bytes -= content.len() - rest.len();
        *content = rest;
        *shortened = true;
        true
    }

    /// Drops whole exchanges from behind the first message and before `last`, as many as it takes.
    /// Returns how many messages went.
    fn drop_oldest(&mut self, last: usize, most: usize) -> usize {
        if self.bytes() <= most || last < 2 {
            return 0;
        }
        let over = (self.bytes + gap(usize::MAX).len()).saturating_sub(most);
        let (mut end, mut gone) = (1, 0);
        for at in 1..last {
            gone += size(&self.entries[at].message);
            // No result may lose its call.
            if !self.entries[at + 1].is_result() {
                end = at + 1;
                if gone >= over {
                    break;
                }
            }
        }
        let gone: usize = self.entries.drain(1..end).map(|it| size(&it.message)).sum();
        self.bytes -= gone;
        self.left_out += end - 1;
        end - 1
    }

    /// The tool whose result stands there.
    fn tool(&self, at: usize) -> Option<&str> {
        let Message::Tool { call_id, .. } = &self.entries.get(at)?.message else { return None };
        self.entries.get(..at)?.iter().rev().find_map(|it| match &it.message {
            Message::Assistant { calls, .. } => {
                calls.iter().find(|call| call.id == *call_id).map(|call| call.name.as_str())
            }
            _ => None,
        })
    }
}

/// What stands for messages that went.
fn gap(messages: usize) -> String {
    format!("[{messages} earlier messages were left out to save space]")
}

/// Bytes of what the model reads or wrote.
fn size(message: &Message) -> usize {
    match message {
        Message::User { content } | Message::Notice { content } => content.len(),
        Message::Tool { call_id, content } => call_id.len() + content.len(),
        Message::Assistant { content, reasoning, calls } => {
            let call = |it: &ToolRequest| it.id.len() + it.name.len() + it.arguments.len();
            content.len() + reasoning.len() + calls.iter().map(call).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn user(content: &str) -> Message {
        Message::User { content: content.to_owned() }
    }

    fn reply(ids: &[&str], content: &str) -> Message {
        let call = |id: &&str| ToolRequest {
            id: (*id).to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
        };
        let calls = ids.iter().map(call).collect();
        Message::Assistant { content: content.to_owned(), reasoning: String::new(), calls }
    }

    fn result(id: &str, bytes: usize) -> Message {
        Message::Tool { call_id: id.to_owned(), content: "x".repeat(bytes) }
    }

    fn history(messages: impl IntoIterator<Item = Message>) -> History {
        let mut history = History::default();
        messages.into_iter().for_each(|it| history.push(it));
        history
    }

    fn text(message: &Message) -> &str {
        match message {
            Message::User { content }
            | Message::Notice { content }
            | Message::Assistant { content, .. }
            | Message::Tool { content, .. } => content,
        }
    }

    #[test]
    fn the_oldest_results_go_first_and_a_line_stays() {
        let mut it = history([
            user("task"),
            reply(&["a", "b"], ""),
            result("a", 1000),
            result("b", 1000),
            reply(&["c"], ""),
            result("c", 1000),
        ]);
        assert_eq!(it.fit(4000), None);
        let trimmed = it.fit(2500).unwrap();
        assert_eq!((trimmed.results, trimmed.messages), (2, 0));
        assert_eq!(trimmed.after, it.bytes());
        let messages = it.messages();
        let line = "[this result of look, 1000 bytes, was left out to save space]";
        assert_eq!((text(&messages[2]), text(&messages[3])), (line, line));
        assert_eq!(messages[5], result("c", 1000));
        // What fits stays as it is, so that the beginning of the requests does too.
        it.push(reply(&["d"], ""));
        it.push(result("d", 500));
        assert_eq!(it.fit(2500), None);
        assert_eq!(it.messages()[..6], messages);
    }

    #[test]
    fn then_whole_exchanges_and_the_task_stays() {
        let talk = |it: &str| reply(&[], &it.repeat(500));
        let mut it =
            history([user("task"), talk("a"), user("more"), talk("b"), user("and"), talk("c")]);
        let trimmed = it.fit(1200).unwrap();
        assert_eq!((trimmed.results, trimmed.messages), (0, 3));
        let messages = it.messages();
        assert_eq!(
            messages.iter().map(text).take(3).collect::<Vec<_>>(),
            ["task", "[3 earlier messages were left out to save space]", "and"]
        );
    }

    #[test]
    fn at_last_the_newest_result_loses_its_beginning() {
        let long = format!("{}é the end", "x".repeat(9000));
        let mut it = history([
            user("task"),
            reply(&["a", "b"], ""),
            result("a", 9000),
            Message::Tool { call_id: "b".to_owned(), content: long },
        ]);
        let trimmed = it.fit(2000).unwrap();
        assert_eq!((trimmed.results, trimmed.messages), (2, 0));
        assert!(it.bytes() <= 2000, "{}", it.bytes());
        let messages = it.messages();
        assert!(text(&messages[2]).starts_with("[this result of look, 9000 bytes"));
        assert!(text(&messages[3]).starts_with("[the first 7"), "{}", text(&messages[3]));
        assert!(text(&messages[3]).ends_with("xé the end"));
        // A server that takes even less.
        assert!(it.shrink(it.bytes() / 2).is_some());
        while it.shrink(0).is_some() {}
        assert_eq!(it.messages().len(), 4);
    }

    /// Messages of one exchange: calls with the sizes of their results, or text alone.
    fn exchange() -> impl Strategy<Value = (usize, Vec<usize>)> {
        (0..300_usize, prop::collection::vec(0..2000_usize, 0..4))
    }

    proptest! {
        #[test]
        fn every_call_keeps_its_result(
            exchanges in prop::collection::vec(exchange(), 0..12),
            mosts in prop::collection::vec(0..6000_usize, 1..4),
        ) {
            let mut it = history([user("the task")]);
            for (number, (said, results)) in exchanges.iter().enumerate() {
                let ids: Vec<String> = (0..results.len()).map(|it| format!("{number}-{it}")).collect();
                it.push(reply(&ids.iter().map(String::as_str).collect::<Vec<_>>(), &"s".repeat(*said)));
                for (id, bytes) in ids.iter().zip(results) {
                    it.push(result(id, *bytes));
                }
                if results.is_empty() {
                    it.push(user("go on"));
                }
            }
            let newest = it.entries.iter().rev().find(|it| it.is_reply()).map(|it| it.message.clone());
            for most in mosts {
                let fits = it.bytes() <= most;
                let trimmed = it.fit(most);
                prop_assert!(!fits || trimmed.is_none());
                prop_assert!(trimmed.is_none_or(|it| it.after < it.before));
                let messages = it.messages();
                prop_assert_eq!(messages.iter().map(size).sum::<usize>(), it.bytes());
                prop_assert_eq!(text(&messages[0]), "the task");
                let last = messages.iter().rfind(|it| matches!(it, Message::Assistant { .. }));
                prop_assert_eq!(last, newest.as_ref());
                let mut open: Vec<String> = Vec::new();
                for message in &messages {
                    if let Message::Tool { call_id, .. } = message {
                        prop_assert!(!open.is_empty());
                        prop_assert_eq!(call_id, &open.remove(0));
                    } else {
                        prop_assert!(open.is_empty());
                    }
                    if let Message::Assistant { calls, .. } = message {
                        open = calls.iter().map(|it| it.id.clone()).collect();
                    }
                }
                prop_assert!(open.is_empty());
            }
        }

        #[test]
        fn the_bound_holds(results in prop::collection::vec(0..20_000_usize, 1..40), most in 4096..20_000_usize) {
            let mut it = history([user("the task")]);
            for (number, bytes) in results.into_iter().enumerate() {
                let id = number.to_string();
                it.push(reply(&[&id], "so"));
                it.push(result(&id, bytes));
                it.fit(most);
                prop_assert!(it.bytes() <= most, "{} of {most}", it.bytes());
            }
        }
    }
}
