//! The pages of `opt --report` and `diff --report`.

use crate::program::{Scratch, anfora, ends};

const PROGRAM: &str = "def @main(%x: Tensor[(4,), float32]) {
  let %\"</script>\" = add(1f, 2f);
  let %y = multiply(%x, %\"</script>\");
  let %z = multiply(%x, %\"</script>\");
  add(%y, %z)
}";

/// Reads a page, and checks that it loads nothing.
fn read(page: &str) -> String {
    let text = std::fs::read_to_string(page).expect("a page");
    // A drawing names the marker of its arrows, which is in the page.
    let elsewhere = text.replace("url(#", "");
    for wanted in ["src=\"", "href=\"http", "url(", "@import"] {
        assert!(!elsewhere.contains(wanted), "the page loads something: {wanted}");
    }
    text
}

/// Returns the data of a page, which is in one element of it.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").expect("the data begins");
    let (data, rest) = rest.split_once("</script>").expect("the data ends");
    assert_eq!(rest.matches("</script>").count(), 1, "the program of the page is the only other script");
    serde_json::from_str(data).expect("the data is JSON")
}

#[test]
fn a_report_is_a_page_with_all_that_it_needs() {
    let scratch = Scratch::new("report");
    let (program, page) = (scratch.file("in put.anf", PROGRAM), scratch.path("report.html"));
    let passes = "FoldConstant,fixpoint<4>(EliminateCommonSubexpr,DeadCodeElimination)";
    let (out, err) = ends(anfora(&["opt", &program, "--passes", passes, "--report", &page, "--emit", "none"]), 0);
    assert!(out.is_empty() && err.contains(&format!("wrote {page}\n")), "{err}");
    let data = data(&read(&page));
    assert_eq!((&data["title"], &data["pipeline"]), (&"in put.anf".into(), &passes.into()));
    let command = format!("anfora opt '{program}' --passes '{passes}' --report {page} --emit none");
    assert_eq!(data["command"], command);
    let runs = data["recording"]["runs"].as_array().expect("a list");
    let names: Vec<&str> = runs.iter().filter_map(|run| run["name"].as_str()).collect();
    assert!(names.starts_with(&["pipeline", "FoldConstant", "fixpoint<4>", "EliminateCommonSubexpr"]), "{names:?}");
    assert_eq!(runs[3]["changes"][0]["bindings"], serde_json::json!([0, 0, 1]), "{}", runs[3]);
    let folded = runs[1]["changes"][0]["hunks"][0].as_array().expect("a hunk");
    let old = folded[2][0].as_u64().expect("a line") as usize;
    assert_eq!(data["recording"]["lines"][old][0], "let %\"</script>\" = add(1f, 2f);");
}

#[test]
fn a_run_that_fails_has_a_report() {
    let scratch = Scratch::new("failed-report");
    let (program, page) = (scratch.file("in.anf", PROGRAM), scratch.path("report.html"));
    let passes = "FoldConstant,BindParams{function=main,params=\"%q=1f\"}";
    ends(anfora(&["opt", &program, "--passes", passes, "--report", &page]), 1);
    let data = data(&read(&page));
    let runs = &data["recording"]["runs"];
    assert_eq!((&runs[1]["outcome"], &runs[2]["outcome"]), (&"changed".into(), &"failed".into()));
    assert!(runs[2]["reason"].as_str().is_some_and(|why| why.contains("there is no parameter `%q`")), "{}", runs[2]);
}

#[test]
fn a_report_goes_to_a_file() {
    let scratch = Scratch::new("report-output");
    let program = scratch.file("in.anf", PROGRAM);
    let (_, err) = ends(anfora(&["opt", &program, "--report", "-"]), 2);
    assert!(err.contains("--report -: this cannot be written to standard output"), "{err}");
    let (_, err) = ends(anfora(&["opt", &program, "--report", &scratch.path("no/such/page.html")]), 1);
    assert!(err.contains("error: cannot write ") && err.contains("page.html: no file can be created"), "{err}");
}

#[test]
fn differences_are_a_page() {
    let scratch = Scratch::new("diff-report");
    let (old, page) = (scratch.file("old.anf", PROGRAM), scratch.path("diff.html"));
    let new = scratch.file("new.anf", &PROGRAM.replace("1f, 2f", "1f, 3f").replace("add(%y, %z)", "subtract(%y, %z)"));
    let (out, err) = ends(anfora(&["diff", &old, &new, "--report", &page]), 1);
    assert_eq!(out, "@main %\"</script>\": operand 1 2f -> 3f\n@main result: operator add -> subtract\n");
    assert!(err.contains(&format!("wrote {page}\n")), "{err}");
    let data = data(&read(&page));
    assert_eq!((&data["left"], &data["right"]), (&"old.anf".into(), &"new.anf".into()));
    assert_eq!((&data["count"], &data["left_out"]), (&2.into(), &0.into()));
    assert_eq!(data["command"], format!("anfora diff {old} {new} --report {page}"));
    let item = &data["differences"]["functions"][0]["items"][0];
    assert_eq!(item["changes"][0]["right"], "3f", "{item}");
    // Equal programs have a page too.
    ends(anfora(&["diff", &old, &old, "--report", &page]), 0);
    assert_eq!(self::data(&read(&page))["count"], 0);
}
