//! Recordings that are written are read again, and drawn.

use std::time::Duration;

use asciicast::{Encoder, Event, EventKind, Header, ReadError, Recording, picture};
use proptest::prelude::*;

fn header() -> Header {
    Header {
        columns: 20,
        rows: 3,
        term: "xterm-256color".to_owned(),
        timestamp: 1_700_000_000,
        title: "pty-1".to_owned(),
    }
}

fn output(at_ms: u64, text: &str) -> Event {
    Event { at: Duration::from_millis(at_ms), kind: EventKind::Output(text.to_owned()) }
}

fn written(events: &[Event]) -> String {
    let mut encoder = Encoder::default();
    let lines = events.iter().map(|event| encoder.event(event.at, &event.kind));
    Encoder::header(&header()) + &lines.collect::<String>()
}

#[test]
fn the_lines_are_those_of_the_format() {
    let events = [
        output(0, "dsh> "),
        Event { at: Duration::from_micros(1_500_010), kind: EventKind::Input("ls\r".to_owned()) },
        Event { at: Duration::from_secs(2), kind: EventKind::Resize { columns: 80, rows: 24 } },
        output(2_000, "\u{1b}[1m\"é\""),
        Event { at: Duration::from_secs(3), kind: EventKind::Exit("0".to_owned()) },
    ];
    let text = written(&events);
    insta::assert_snapshot!(text, @r#"
    {"version":3,"term":{"cols":20,"rows":3,"type":"xterm-256color"},"timestamp":1700000000,"title":"pty-1"}
    [0.000000, "o", "dsh> "]
    [1.500010, "i", "ls\r"]
    [0.499990, "r", "80x24"]
    [0.000000, "o", "\u001b[1m\"é\""]
    [1.000000, "x", "0"]
    "#);
    let read = Recording::parse(&text).unwrap();
    assert_eq!((read.header.clone(), &read.events[..]), (header(), &events[..]));
    assert_eq!(read.length(), Duration::from_secs(3));
}

#[test]
fn a_recording_that_was_cut_off_is_read_as_far_as_it_goes() {
    let text = written(&[output(1, "one"), output(2, "two")]);
    let read = Recording::parse(&text[..text.len() - 4]).unwrap();
    assert_eq!(read.events, [output(1, "one")]);
    let comment = text.replacen("[0.0", "# a comment\n\n[0.0", 1);
    assert_eq!(Recording::parse(&comment).unwrap().events.len(), 2);
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    let broken = written(&[output(1, "one")]) + "[1, \"r\", \"wide\"]\n";
    for (text, expected) in [
        ("", "it is no asciicast"),
        ("{\"version\":3,\"term\":{\"cols\":0,\"rows\":3}}\n", "the terminal has no size"),
        ("{\"version\":2,\"width\":80,\"height\":24}\n", "it is an asciicast of version 2"),
        (&broken, "line 3 is no event of an asciicast: \"wide\" is no size"),
    ] {
        let error = Recording::parse(text).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(Recording::parse("{\"version\":2}\n").unwrap_err(), ReadError::Version(2),);
}

#[test]
fn the_picture_is_of_its_moment() {
    let recording = Recording::parse(&written(&[
        output(0, "plain \u{1b}[1;31mred\u{1b}[0m <&>\r\n"),
        output(1_000, "\u{1b}[7mselected\u{1b}[27m 日本"),
        Event { at: Duration::from_secs(2), kind: EventKind::Resize { columns: 30, rows: 2 } },
        output(3_000, "\u{1b}[2J\u{1b}[H\u{1b}[38;2;1;2;3mlater"),
    ]))
    .unwrap();
    let at = |seconds| picture(&recording, Duration::from_secs(seconds));
    let first = at(0);
    assert!(first.contains("red") && first.contains("&lt;&amp;&gt;"), "{first}");
    assert!(!first.contains("selected"), "{first}");
    insta::assert_snapshot!(at(1));
    // As wide and as high as the terminal, whatever is shown.
    assert!(at(1).starts_with("<svg width=\"188px\" height=\"74px\""), "{}", at(1));
    assert!(at(2).starts_with("<svg width=\"272px\" height=\"56px\""), "{}", at(2));
    assert!(at(9).contains("later") && !at(9).contains("plain"), "{}", at(9));
}

proptest! {
    /// However output is cut, nothing of it is lost, and no time either.
    #[test]
    fn cuts_change_nothing(
        text in "[a-zé日\u{1f600}]{0,40}",
        cuts in proptest::collection::vec((0_usize..160, 0_u64..3_000_000), 0..8),
    ) {
        let mut encoder = Encoder::default();
        let mut lines = Encoder::header(&header());
        let mut cuts: Vec<_> =
            cuts.into_iter().map(|(at, time)| (at % (text.len() + 1), time)).collect();
        cuts.push((text.len(), 1));
        cuts.sort_unstable();
        let (mut from, mut now) = (0, Duration::ZERO);
        for (to, wait) in cuts {
            now += Duration::from_micros(wait);
            lines.extend(encoder.output(now, &text.as_bytes()[from..to]));
            from = to;
        }
        let read = Recording::parse(&lines).unwrap();
        let outputs = read.events.iter().map(|event| match &event.kind {
            EventKind::Output(text) => text.as_str(),
            other => panic!("{other:?}"),
        });
        prop_assert_eq!(outputs.collect::<String>(), text);
        prop_assert!(read.length() <= now);
    }

    /// No recording makes the picture panic.
    #[test]
    fn any_output_can_be_drawn(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut encoder = Encoder::default();
        let line = encoder.output(Duration::ZERO, &bytes).unwrap_or_default();
        let recording = Recording::parse(&(Encoder::header(&header()) + &line)).unwrap();
        prop_assert!(picture(&recording, Duration::ZERO).ends_with("</svg>\n"));
    }
}
