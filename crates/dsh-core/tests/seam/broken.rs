//! Broken compositions: the texts a user reads.

use dsh_core::{Composition, Plan, PluginEntry};

use crate::plugins::{VOCABULARY, parse, plan, resolve};

fn problems(yaml: &str) -> String {
    resolve(&parse(yaml)).unwrap_err()
}

#[test]
fn every_problem_is_reported_at_once_with_the_line_of_its_row() {
    let error = problems(
        r"
- name: voixe
- name: concert
- name: voice
  config: { range: { low: -3, hihg: 2 }, text: 5 }
- name: voice
  config: { range: { low: 3, high: 2 } }
- name: audience
- name: audience
  id: audience2
- name: ping
- name: '@deepseek-ai/dsh-printer'
- name: pong
- name: voices
  id: choir
  disabled: true
- nmae: voices
- voices
- name: tickets
  config: { price: !!js process.env.PRICE }
- name: '@deepseek-ai/dsh-speech'
",
    );
    let expected = "cannot start dsh.yml: 17 problems
  dsh.yml:2: no plugin is named `voixe`
    hint: did you mean `voice`?
  dsh.yml:3: row `concert` needs service `voices`, which no enabled row provides
    hint: row `choir` (dsh.yml:14) provides it but is disabled
  dsh.yml:4: row `voice`: config.range.low: invalid value: integer `-3`, expected a whole number from 0 to 255
  dsh.yml:4: row `voice`: config.range.hihg: unknown field `hihg`, expected `low` or `high`
    hint: did you mean `high`?
  dsh.yml:4: row `voice`: config.text: invalid type: integer `5`, expected a string
  dsh.yml:4: row `voice` needs service `voices`, which no enabled row provides
    hint: row `choir` (dsh.yml:14) provides it but is disabled
  dsh.yml:6: row id `voice` is already used at dsh.yml:4
    hint: give one of the two rows its own `id`
  dsh.yml:6: row `voice`: config.range.low: 3 is above `range.high` (2); lower it
  dsh.yml:6: row `voice` needs service `voices`, which no enabled row provides
    hint: row `choir` (dsh.yml:14) provides it but is disabled
  dsh.yml:9: row `audience2` provides service `applause`, which row `audience` (dsh.yml:8) already provides
    hint: disable one of the two rows
  dsh.yml:11: rows wait for each other, so none of them can start first
    row `ping` (dsh.yml:11) needs `pong` of row `pong`
    row `pong` (dsh.yml:13) needs `ping` of row `ping`
    hint: disable one of them, or use another provider of one of these services
  dsh.yml:12: `@deepseek-ai/dsh-printer` is a DSH row that this host does not provide
    hint: remove the row or set `disabled: true` in it
  dsh.yml:17: a row has no key `nmae`
    hint: did you mean `name`?
  dsh.yml:17: the row has no `name`; write rows such as `- name: terminal`
  dsh.yml:18: a row is a mapping with a `name`, not `\"voices\"`; write rows such as `- name: terminal`
  dsh.yml:19: config.price: tag `!!js` is not evaluated
    hint: write the value itself
  dsh.yml:21: `@deepseek-ai/dsh-speech` is a DSH row that this host does not provide
    hint: remove the row or set `disabled: true` in it";
    assert_eq!(error, expected);
}

#[test]
fn single_mistakes() {
    let cases = [
        (
            "- name: voice\n",
            "dsh.yml:1: row `voice` needs service `voices`, which no enabled row provides\n    hint: add a row `- name: voices` or `- name: voices-other`",
        ),
        (
            "- name: voices\n  disabeld: true\n",
            "dsh.yml:1: a row has no key `disabeld`\n    hint: did you mean `disabled`?",
        ),
        (
            "- name: voices\n  price: 3\n",
            "dsh.yml:1: a row has no key `price`\n    hint: a row has `name`, `id`, `disabled` and `config`; settings of the plugin go into `config`",
        ),
        (
            "- name: voices\n  disabled: yes\n",
            "dsh.yml:1: `disabled` is `\"yes\"`, but must be true or false",
        ),
        ("- name: 7\n", "dsh.yml:1: `name` is `7`, but must be a non-empty text"),
        ("- name: voices\n  id: ''\n", "dsh.yml:1: `id` is `\"\"`, but must be a non-empty text"),
        (
            "- name: voices\n  config: [1]\n",
            "dsh.yml:1: `config` is a list, but must be a mapping of settings",
        ),
        (
            "- name: voices\n  config: { loud: true }\n",
            "dsh.yml:1: row `voices`: config.loud: unknown field `loud`, there are no fields",
        ),
        ("- name: tickets\n", "dsh.yml:1: row `tickets`: config: missing field `price`"),
        (
            "- name: tickets\n  config: { price: many }\n",
            "dsh.yml:1: row `tickets`: config.price: invalid type: string \"many\", expected a whole number from 0 to 4294967295",
        ),
        (
            "- name: !!js env.NAME\n",
            "dsh.yml:1: name: tag `!!js` is not evaluated\n    hint: write the value itself",
        ),
        (
            "- !!js env.ROW\n",
            "dsh.yml:1: row: tag `!!js` is not evaluated\n    hint: write the value itself",
        ),
        (
            "- name: voices\n  config: !!js env.CONFIG\n",
            "dsh.yml:1: config: tag `!!js` is not evaluated\n    hint: write the value itself",
        ),
        (
            "- name: tickets\n  config:\n    price: 3\n    list: [1, { deep: !local 2 }]\n",
            "dsh.yml:1: config.list[1].deep: tag `!local` is not evaluated\n    hint: write the value itself",
        ),
        (
            "- name: printer\n",
            "dsh.yml:1: `printer` is a DSH row that this host does not provide\n    hint: remove the row or set `disabled: true` in it",
        ),
        (
            "- name: '@deepseek-ai/dsh-concret'\n",
            "dsh.yml:1: `@deepseek-ai/dsh-concret` is a DSH row that this host does not provide\n    hint: did you mean `concert`? Otherwise remove the row or set `disabled: true` in it",
        ),
        (
            "- name: '@deepseek-ai/dsh-voice-far'\n",
            "dsh.yml:1: `@deepseek-ai/dsh-voice-far` is a DSH row that this host does not provide\n    hint: remove the row or set `disabled: true` in it",
        ),
        (
            "- name: concertos\n",
            "dsh.yml:1: `concertos` is a DSH row that this host does not provide\n    hint: did you mean `concert`? Otherwise remove the row or set `disabled: true` in it",
        ),
        (
            "- name: zzzzzzzz\n",
            "dsh.yml:1: no plugin is named `zzzzzzzz`\n    hint: known plugins: audience, concert, ping, ping-polite, pong, tickets, trouble, voice, voices, voices-other",
        ),
    ];
    for (yaml, expected) in cases {
        let expected = format!("cannot start dsh.yml: 1 problem\n  {expected}");
        assert_eq!(problems(yaml), expected, "{yaml}");
    }
}

#[test]
fn what_rows_claim_is_held_against_each_other() {
    let rows = "- name: voices
- name: voice
  config: { part: alto }
- name: voice
  id: second
  config: { part: alto }
- name: voice
  id: third
  disabled: true
  config: { part: alto }
";
    let taken = "dsh.yml:4: row `second`: config.part: `alto` is the part of row `voice` (dsh.yml:2) already
    hint: give each of the two rows its own `part`, or disable one";
    assert_eq!(problems(rows), format!("cannot start dsh.yml: 1 problem\n  {taken}"));
    let needs = "dsh.yml:2: row `concert`: config.lead: nobody has a part: give a voice one";
    let concert = "- name: voices\n- name: concert\n  config: { lead: true }\n- name: voice\n";
    assert_eq!(problems(concert), format!("cannot start dsh.yml: 1 problem\n  {needs}"));
    plan(&format!("{concert}  config: {{ part: alto }}\n"));
    // A row that is wrong may be the one that would have it.
    let wrong = problems(&format!("{concert}  config: {{ part: alto, text: 5 }}\n"));
    assert!(wrong.contains("config.text") && !wrong.contains("lead"), "{wrong}");
}

#[test]
fn what_is_not_a_yaml_list_is_reported_alone_with_its_line() {
    let cases = [
        ("", "dsh.yml: the file is empty; write rows such as `- name: terminal`"),
        ("# nothing\n", "dsh.yml: the file is empty; write rows such as `- name: terminal`"),
        ("[]\n", "dsh.yml:1: the list has no rows; write rows such as `- name: terminal`"),
        (
            "\nplugins:\n- name: voices\n",
            "dsh.yml:2: a composition is a list of rows, not a mapping; write rows such as `- name: terminal`",
        ),
        ("!!js env.ROWS\n", "dsh.yml:1: tag `!!js` is not evaluated; write the list itself"),
        (
            "voices\n",
            "dsh.yml:1: a composition is a list of rows, not `\"voices\"`; write rows such as `- name: terminal`",
        ),
        (
            "- name: voices\n- name: voice\n  config: { text: a, text: b }\n",
            "dsh.yml:3: column 22: the key `text` is already there; keep one of the two",
        ),
        (
            "- name: voices\n  name: voice\n",
            "dsh.yml:2: column 3: the key `name` is already there; keep one of the two",
        ),
        (
            "- name: voices\n---\n- name: voice\n",
            "dsh.yml:3: column 1: a second YAML document starts here; keep one list in one file",
        ),
        (
            "- id: voice\n  disabled: true\n- insert: after\n  id: voice\n  row: { name: voice }\n",
            "dsh.yml:1: this is an overlay, a list of changes by `id`, and no composition; check or start a composition, and give this file with `--patch`",
        ),
    ];
    for (yaml, expected) in cases {
        let error = Composition::parse("dsh.yml", yaml, &VOCABULARY).unwrap_err();
        assert_eq!(error.to_string(), expected, "{yaml}");
    }
    for yaml in ["- name: voices\n  config: {\n", "- name: voices\n - name: voice\n", "- 'a\n"] {
        let error = Composition::parse("dsh.yml", yaml, &VOCABULARY).unwrap_err();
        assert!(error.place.line.is_some(), "{error}");
        assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error}");
    }
}

#[test]
fn rows_of_the_host_are_named_as_such() {
    let linked = PluginEntry::linked();
    let composition = parse("- name: audience\n").with_base(&["voice"], &linked);
    assert_eq!(
        resolve(&composition).unwrap_err(),
        "cannot start dsh.yml: 1 problem
  built in: row `voice` needs service `voices`, which no enabled row provides
    hint: add a row `- name: voices` or `- name: voices-other`"
    );
}

#[test]
fn two_plugins_of_one_name_are_a_fault_of_the_build() {
    let mut linked = PluginEntry::linked();
    linked.extend(PluginEntry::linked().into_iter().filter(|entry| entry.name == "voices"));
    let error = Plan::resolve(&parse("- name: voices\n"), &linked).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot start dsh.yml: 1 problem
  linked plugins: two linked crates register plugin `voices`
    hint: rename one of them and build again"
    );
}

#[test]
fn disabled_rows_with_a_tag_are_nobodys_business() {
    let rows =
        "- name: printer\n  disabled: true\n  config: { token: !!js env.T }\n- name: voices\n";
    assert_eq!(resolve(&parse(rows)).unwrap().order(), ["voices"]);
}

#[test]
fn a_wrong_key_hides_no_other_problem_of_its_row() {
    let range = "dsh.yml:1: row `voice`: config.range.low";
    let cases = [
        // Bounds between values are checked whatever else is wrong.
        (
            "{ range: { low: 3, high: 2 }, txet: do }",
            vec![
                "dsh.yml:1: row `voice`: config.txet: unknown field `txet`, expected one of `text`, `range`, `part`\n    hint: did you mean `text`?".to_owned(),
                format!("{range}: 3 is above `range.high` (2); lower it"),
            ],
        ),
        (
            "{ range: { low: 3, high: 2, mid: 1 }, text: 5 }",
            vec![
                format!("{}: unknown field `mid`, expected `low` or `high`", range.replace("low", "mid")),
                "dsh.yml:1: row `voice`: config.text: invalid type: integer `5`, expected a string".to_owned(),
                format!("{range}: 3 is above `range.high` (2); lower it"),
            ],
        ),
        // Nothing is said about a value that nobody wrote.
        (
            "{ range: { low: 50, high: two } }",
            vec![format!("{}: invalid type: string \"two\", expected a whole number from 0 to 255", range.replace("low", "high"))],
        ),
        (
            "{ range: 7, text: do }",
            vec!["dsh.yml:1: row `voice`: config.range: invalid type: integer `7`, expected struct Range".to_owned()],
        ),
        (
            "{ range: { low: 50, high: !!js env.HIGH } }",
            vec!["dsh.yml:1: config.range.high: tag `!!js` is not evaluated\n    hint: write the value itself".to_owned()],
        ),
    ];
    for (config, expected) in cases {
        let expected = format!(
            "cannot start dsh.yml: {} problem{}\n  {}",
            expected.len(),
            if expected.len() == 1 { "" } else { "s" },
            expected.join("\n  ")
        );
        let yaml = format!("- name: voice\n  config: {config}\n- name: voices\n");
        assert_eq!(problems(&yaml), expected, "{config}");
    }
}

#[test]
fn a_provider_that_does_not_run_is_named_with_the_reason() {
    let idle = parse("- name: voices\n  id: choir\n- name: voice\n")
        .with_front_end("audience", &["voices"]);
    assert_eq!(
        resolve(&idle).unwrap_err(),
        "cannot start dsh.yml: 1 problem
  dsh.yml:3: row `voice` needs service `voices`, which no enabled row provides
    hint: row `choir` (dsh.yml:1) provides it but stays idle: it is the row of another front end"
    );
}
