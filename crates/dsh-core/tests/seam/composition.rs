//! Rows, layers and the order they start in.

use dsh_core::{Composition, PluginEntry, composition::RowState};
use serde_json::{Value, json};

use crate::plugins::{VOCABULARY, parse, plan, resolve};

fn ids(composition: &Composition) -> Vec<&str> {
    composition.rows().iter().map(|row| row.id.as_str()).collect()
}

#[test]
fn names_lose_their_prefix_and_aliases_find_their_plugin() {
    let composition = parse(
        "- name: '@deepseek-ai/dsh-voice'\n- name: voice-local\n- name: '@deepseek-ai/dsh-choir'\n  id: own\n",
    );
    let rows: Vec<(&str, &str)> =
        composition.rows().iter().map(|row| (row.id.as_str(), row.plugin.as_str())).collect();
    assert_eq!(rows, [("voice", "voice"), ("voice-local", "voice"), ("own", "voices")]);
    assert_eq!(resolve(&composition).unwrap().order(), ["own", "voice", "voice-local"]);
}

#[test]
fn a_row_keeps_its_place_state_and_written_configuration() {
    let composition = parse(
        "# a comment\n- name: voice\n  config: { text: do, range: { high: 5 } }\n\n- name: printer\n  disabled: true\n- name: voices\n  config:\n",
    );
    let rows = composition.rows();
    let seen: Vec<(String, RowState, Value)> = rows
        .iter()
        .map(|row| (row.place.to_string(), row.state, row.config.values.clone().into()))
        .collect();
    assert_eq!(
        seen,
        [
            (
                "dsh.yml:2".to_owned(),
                RowState::Enabled,
                json!({ "text": "do", "range": { "high": 5 } })
            ),
            ("dsh.yml:5".to_owned(), RowState::Disabled, json!({})),
            ("dsh.yml:7".to_owned(), RowState::Enabled, json!({})),
        ]
    );
    // A row that this host does not provide may stay in the file as long as it is disabled.
    assert_eq!(resolve(&composition).unwrap().order(), ["voices", "voice"]);
}

#[test]
fn numbers_booleans_and_text_keep_their_yaml_types() {
    let composition = parse(
        "- name: voice\n  config: { a: 1, b: 1.5, c: true, d: yes, e: '1', f: 0755, g: !!str 7, h: ~ }\n",
    );
    let expected = json!({
        "a": 1, "b": 1.5, "c": true, "d": "yes", "e": "1", "f": "0755", "g": "7", "h": null,
    });
    assert_eq!(Value::from(composition.rows()[0].config.values.clone()), expected);
}

#[test]
fn the_base_layer_gives_way_to_the_file() {
    let linked = PluginEntry::linked();
    let base = ["voices", "audience"];
    let with_base = |yaml: &str| parse(yaml).with_base(&base, &linked);

    let composition = with_base("- name: voice\n");
    assert_eq!(ids(&composition), ["voices", "audience", "voice"]);
    assert!(composition.rows()[0].is_built_in() && !composition.rows()[2].is_built_in());
    assert_eq!(composition.rows()[0].place.to_string(), "built in");

    // The file has the plugin, under another id or an alias.
    assert_eq!(ids(&with_base("- name: choir\n")), ["audience", "choir"]);
    // The file has another provider of the service.
    assert_eq!(ids(&with_base("- name: voices-other\n")), ["audience", "voices-other"]);
    // A disabled provider of another name provides nothing.
    assert_eq!(
        ids(&with_base("- name: voices-other\n  disabled: true\n")),
        ["voices", "audience", "voices-other"]
    );
    // A disabled row of the same plugin turns the base row off.
    assert_eq!(ids(&with_base("- name: voices\n  disabled: true\n")), ["audience", "voices"]);
}

#[test]
fn the_front_end_asked_for_runs_and_the_others_stay_idle() {
    let states = |yaml: &str| -> Vec<(String, RowState)> {
        let composition = parse(yaml).with_front_end("concert", &["tickets", "voice"]);
        composition.rows().iter().map(|row| (row.id.clone(), row.state)).collect()
    };
    let row = |id: &str, state| (id.to_owned(), state);
    assert_eq!(
        states("- name: tickets\n- name: voices\n- name: voice\n  disabled: true\n"),
        [
            row("tickets", RowState::Idle),
            row("voices", RowState::Enabled),
            row("voice", RowState::Disabled),
            row("concert", RowState::Enabled),
        ]
    );
    assert_eq!(
        states("- name: concert\n  id: mine\n  disabled: true\n"),
        [row("mine", RowState::Enabled)]
    );
}

#[test]
fn flags_override_keys_of_a_row_and_need_one() {
    let flagged =
        parse("- name: voices\n- name: voice\n  config: { text: do, range: { low: 2 } }\n")
            .with_config("voice", "text", "re");
    assert_eq!(
        Value::from(flagged.rows()[1].config.values.clone()),
        json!({ "text": "re", "range": { "low": 2 } })
    );
    assert!(resolve(&flagged).is_ok());
    assert_eq!(
        resolve(&parse("- name: voices\n").with_config("concert", "encore", true)).unwrap_err(),
        "cannot start dsh.yml: 1 problem
  command line: a flag sets `encore` of plugin `concert`, which has no row
    hint: add a row `- name: concert`"
    );
}

#[test]
fn providers_start_first_and_the_order_of_the_rows_breaks_ties() {
    let plan = plan("- name: concert\n- name: voice\n- name: audience\n- name: voices\n");
    // `concert` stands first but waits for `voices` and, because it is there, `applause`.
    assert_eq!(plan.order(), ["audience", "voices", "concert", "voice"]);
}

#[test]
fn an_optional_service_never_makes_a_cycle() {
    assert_eq!(plan("- name: ping-polite\n- name: pong\n").order(), ["ping-polite", "pong"]);
}

#[test]
fn an_entry_tells_catalogs_what_the_plugin_is() {
    let linked = PluginEntry::linked();
    let entry = linked.iter().find(|entry| entry.name == "concert").unwrap();
    let inject: Vec<_> = (entry.inject)().iter().map(|it| (it.name, it.required)).collect();
    assert_eq!(inject, [("voices", true), ("applause", false)]);
    assert_eq!((entry.provide)(), ["show"]);
    let schema = (entry.config_schema)();
    assert_eq!(schema.pointer("/properties/encore/default"), Some(&json!(false)));

    let entry = linked.iter().find(|entry| entry.name == "voice").unwrap();
    let written =
        parse("- name: voice\n  config: { range: { high: 5 } }\n").rows()[0].config.values.clone();
    assert_eq!(
        (entry.fill_defaults)(written).unwrap(),
        json!({ "text": "la", "range": { "low": 1, "high": 5 } })
    );
}

#[test]
fn a_vocabulary_is_optional() {
    let composition = Composition::parse("x", "- name: voices\n", &dsh_core::Vocabulary::default());
    assert!(resolve(&composition.unwrap()).is_ok());
    assert_eq!(VOCABULARY.prefix, "@deepseek-ai/dsh-");
}
