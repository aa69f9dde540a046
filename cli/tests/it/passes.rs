//! `anfora passes` and `docs/passes.md` list the same passes.

use serde_json::Value;

use crate::program::{anfora, ends};

fn passes(arguments: &[&str]) -> String {
    ends(anfora(&[&["passes"], arguments].concat()), 0).0
}

/// Returns the rows of the first table of the page: name, level, doc, options, settings.
fn rows() -> Vec<Vec<String>> {
    let page = include_str!("../../../docs/passes.md");
    let table = page.lines().skip_while(|l| !l.starts_with("| pass |")).skip(2).take_while(|l| l.starts_with('|'));
    table
        .map(|line| {
            let cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_string());
            cells.collect()
        })
        .collect()
}

#[test]
fn the_page_and_the_program_list_the_same_passes() {
    let listed: Vec<Value> = passes(&["--json"]).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let rows = rows();
    assert!(rows.len() > 10, "the page has a table of passes");
    let text = |value: &Value| value.as_str().expect("a text").to_string();
    let of_program: Vec<Vec<String>> = listed
        .iter()
        .map(|pass| {
            let options = pass["options"].as_array().expect("a list").iter().map(|o| {
                let (key, default, doc) = (text(&o["key"]), text(&o["default"]), text(&o["doc"]));
                if default.is_empty() { format!("`{key}`: {doc}") } else { format!("`{key}` ({default}): {doc}") }
            });
            let configs = pass["configs"].as_array().expect("a list").iter().map(|c| format!("`{}`", text(c)));
            let name = text(&pass["name"]);
            vec![
                format!("[{name}](#{})", name.to_lowercase()),
                pass["level"].to_string(),
                text(&pass["doc"]),
                options.collect::<Vec<_>>().join("; "),
                configs.collect::<Vec<_>>().join(", "),
            ]
        })
        .collect();
    assert_eq!(rows, of_program, "docs/passes.md and `anfora passes` differ");
}

#[test]
fn people_are_shown_what_machines_are() {
    let shown = passes(&[]);
    for line in passes(&["--json"]).lines() {
        let pass: Value = serde_json::from_str(line).expect("JSON");
        let (name, doc) = (pass["name"].as_str().expect("a text"), pass["doc"].as_str().expect("a text"));
        let level = format!("level {}", pass["level"]);
        let found = shown.lines().any(|l| l.starts_with(&format!("{name} ")) && l.contains(&level) && l.contains(doc));
        assert!(found, "{name} is not in\n{shown}");
        for option in pass["options"].as_array().expect("a list") {
            let (key, doc) = (option["key"].as_str().expect("a text"), option["doc"].as_str().expect("a text"));
            // An option of type `numbers` is shown with NAME in place of its key.
            let key = if option["type"] == "numbers" { "NAME" } else { key };
            assert!(
                shown.lines().any(|l| l.trim_start().starts_with(&format!("{{{key}=")) && l.ends_with(doc)),
                "{key}"
            );
        }
        for config in pass["configs"].as_array().expect("a list") {
            let key = config.as_str().expect("a text");
            assert!(shown.lines().any(|l| l.trim_start().starts_with(&format!("{key}="))), "{key} is not in\n{shown}");
        }
    }
}
