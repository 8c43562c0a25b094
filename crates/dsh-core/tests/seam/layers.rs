//! Overlays on a composition, and the dump of the whole.

use dsh_core::{
    Composition, Overlay, Plan, PluginEntry,
    composition::RowState::{self, Disabled, Enabled},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::plugins::{VOCABULARY, parse, resolve};

const FILE: &str = "\
- name: voices
- name: voice
  config: { text: do, range: { high: 5 } }
- name: printer
  disabled: true
";

fn overlay(text: &str) -> Overlay {
    Overlay::parse("patch.yml", text, &VOCABULARY).unwrap()
}

fn problems(composition: &Composition) -> Vec<String> {
    let error = Plan::resolve(composition, &PluginEntry::linked()).unwrap_err();
    error.problems.iter().map(ToString::to_string).collect()
}

fn rows(composition: &Composition) -> Vec<(&str, &str, RowState, Value)> {
    let rows = composition.rows().iter();
    rows.map(|it| (&*it.id, &*it.plugin, it.state, it.config.values.clone().into())).collect()
}

#[test]
fn items_are_applied_in_order() {
    let patched = parse(FILE).with_overlay(
        overlay(
            "- id: voice\n  config: { text: re }\n\
             - insert: after\n  id: voice\n  row: { name: '@deepseek-ai/dsh-voice', id: second }\n\
             - insert: before\n  id: second\n  row: { name: voice, id: between }\n\
             - id: second\n  config: { text: mi }\n  disabled: true\n\
             - id: printer\n  disabled: true\n",
        ),
        &[],
    );
    assert_eq!(
        rows(&patched),
        [
            ("voices", "voices", Enabled, json!({})),
            // The whole configuration is replaced, not merged.
            ("voice", "voice", Enabled, json!({ "text": "re" })),
            ("between", "voice", Enabled, json!({})),
            ("second", "voice", Disabled, json!({ "text": "mi" })),
            ("printer", "printer", Disabled, json!({})),
        ]
    );
    assert_eq!(resolve(&patched).unwrap().order(), ["voices", "voice", "between"]);
}

#[test]
fn a_row_can_be_turned_on_and_an_empty_overlay_changes_nothing() {
    let file = parse("- name: voices\n  disabled: true\n- name: voice\n");
    let same = file.clone().with_overlay(overlay("# nothing\n"), &[]);
    assert_eq!(rows(&same), rows(&file));
    assert_eq!(rows(&file.clone().with_overlay(overlay("[]\n"), &[])), rows(&file));
    let on = file.with_overlay(overlay("- id: voices\n  disabled: false\n"), &[]);
    assert_eq!(resolve(&on).unwrap().order(), ["voices", "voice"]);
}

#[test]
fn a_target_must_exist_unless_this_run_has_no_use_for_it() {
    let patch = || overlay("- id: vioce\n  disabled: true\n- id: web\n  config: {}\n");
    let both = parse(FILE).with_overlay(patch(), &[]);
    assert_eq!(
        problems(&both),
        [
            "patch.yml:1: no row has the id `vioce`\n    hint: did you mean `voice`?",
            "patch.yml:3: no row has the id `web`\n    hint: rows: voices, voice, printer",
        ]
    );
    assert_eq!(problems(&parse(FILE).with_overlay(patch(), &["web"])).len(), 1);
}

#[test]
fn what_an_overlay_wrote_is_reported_where_it_was_written() {
    let file = "- name: voices\n- name: voice\n  config: { text: 5, x: !!js 1 }\n";
    // What was wrong in the file is gone with the configuration that it was in.
    let patch = "\n- id: voice\n  config: { range: { low: -1 }, text: !!js f() }\n";
    let patched = parse(file).with_overlay(overlay(patch), &[]);
    let found = problems(&patched);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("patch.yml:2: config.text: tag `!!js`"), "{}", found[0]);
    assert!(found[1].starts_with("patch.yml:2: row `voice`: config.range.low: "), "{}", found[1]);
}

#[test]
fn every_broken_item_is_reported_with_its_line() {
    let patch = "\
- voice
- config: {}
- id: voice
- { id: voice, insert: between, row: { name: voice } }
- { id: voice, insert: after }
- { id: voice, row: { name: voice } }
- { id: voice, insert: after, row: { name: voice, id: x }, disabled: true }
- { id: 7, config: 3, disabled: yes, colour: red }
- !!js x
- { id: !!js x, config: {} }
- { id: voice, insert: after, row: { nmae: voice } }
";
    let patched = parse(FILE).with_overlay(overlay(patch), &[]);
    let found = problems(&patched);
    let heads: Vec<&str> = found.iter().map(|it| it.lines().next().unwrap()).collect();
    assert_eq!(
        heads,
        [
            "patch.yml:11: a row has no key `nmae`",
            "patch.yml:11: the row has no `name`; write rows such as `- name: terminal`",
            "patch.yml:1: an item is a mapping with an `id`, not `\"voice\"`",
            "patch.yml:2: the item has no `id`",
            "patch.yml:3: the item changes nothing",
            "patch.yml:4: `insert` is `\"between\"`, but must be before or after",
            "patch.yml:5: `insert` without the `row` to insert",
            "patch.yml:6: a `row` without `insert: before` or `insert: after`",
            "patch.yml:7: `insert` and a change of the row that is there in one item; write two",
            "patch.yml:8: `id` is `7`, but must be a non-empty text",
            "patch.yml:8: `config` is `3`, but must be a mapping of settings",
            "patch.yml:8: `disabled` is `\"yes\"`, but must be true or false",
            "patch.yml:8: an item has no key `colour`",
            "patch.yml:9: item: tag `!!js` is not evaluated",
            "patch.yml:10: id: tag `!!js` is not evaluated",
        ]
    );
    let not_a_list = |text| Overlay::parse("p.yml", text, &VOCABULARY).unwrap_err().to_string();
    assert!(not_a_list("id: voice\n").starts_with("p.yml:1: an overlay is a list of changes"));
    assert!(not_a_list("- id: a\n  id: b\n").starts_with("p.yml:2: "));
    assert!(not_a_list("- [").starts_with("p.yml:"));
}

#[test]
fn a_dump_names_files_and_fills_defaults_in() {
    let linked = PluginEntry::linked();
    let composed = parse(FILE)
        .with_base(&["fixed-clock"], &linked)
        .with_front_end("audience", &["voice"])
        .with_overlay(overlay("\n- id: voices\n  disabled: false\n"), &[]);
    insta::assert_snapshot!(composed.dump(&linked));
}

/// What a row's configuration may hold.
fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[-?:,\\[\\]{}#&*!|>'\"%@`~ ]{0,4}[a-z0-9]{0,3}",
        prop::sample::select(vec![
            "yes", "no", "null", "~", "0755", "1e3", ".5", "true", "- a", ""
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        let map = prop::collection::vec((text.clone(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            map.prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_dump_reads_back_as_the_same_rows(config in prop::collection::vec(("[a-z]{1,5}", value()), 0..4)) {
        let mut composition = parse("- name: printer\n  id: some\n  disabled: true\n- name: voices\n");
        for (key, value) in config {
            composition = composition.with_config("printer", &key, value);
        }
        let text = composition.dump(&PluginEntry::linked());
        let again = Composition::parse("again.yml", &text, &VOCABULARY);
        let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(rows(&again), rows(&composition), "{}", text);
    }
}
