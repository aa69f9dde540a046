//! Unified diffs of texts.

use anfora_ir::unified_diff;

fn diff(old: &str, new: &str) -> String {
    unified_diff(["a", "b"], old, new)
}

fn text(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns the lines of a diff that were removed or added.
fn changed(diff: &str) -> Vec<&str> {
    diff.lines().skip(2).filter(|line| line.starts_with(['-', '+'])).collect()
}

/// Returns the old lines with a diff applied. Checks that its context is in the old text, and that
/// a line that is the same stands between any two changes.
fn patched<'a>(old: &[&'a str], diff: &'a str) -> Vec<&'a str> {
    let (mut out, mut at, mut mark) = (Vec::new(), 0, ' ');
    for line in diff.lines().skip(2) {
        if let Some(place) = line.strip_prefix("@@ -") {
            let (start, count) = place.split_once(' ').unwrap().0.split_once(',').unwrap_or((place, "1"));
            let start: usize = start.split(' ').next().unwrap().parse().unwrap();
            let start = if count == "0" { start } else { start - 1 };
            assert!(at <= start, "{diff}");
            out.extend(&old[at..start]);
            (at, mark) = (start, ' ');
            continue;
        }
        let (kind, line) = line.split_at(1);
        assert!(mark != '+' || kind != "-", "{diff}");
        mark = kind.chars().next().unwrap();
        if mark != '+' {
            assert_eq!(old[at], line, "{diff}");
            at += 1;
        }
        if mark != '-' {
            out.push(line);
        }
    }
    out.extend(&old[at..]);
    out
}

#[test]
fn equal_texts_have_no_diff() {
    assert_eq!(diff("a\nb\n", "a\nb\n"), "");
}

#[test]
fn context_is_shown_and_changes_that_are_near_are_one_hunk() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n";
    let new = old.replace("\n3\n", "\nthree\n").replace("\n7\n", "\n").replace("\n20\n", "\n20\n21\n");
    let expected = "\
--- a
+++ b
@@ -1,10 +1,9 @@
 1
 2
-3
+three
 4
 5
 6
-7
 8
 9
 10
@@ -18,3 +17,4 @@
 18
 19
 20
+21
";
    assert_eq!(diff(old, &new), expected);
}

#[test]
fn nothing_becomes_something_and_back() {
    assert_eq!(diff("", "a\n"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+a\n");
    assert_eq!(diff("a\nb\n", ""), "--- a\n+++ b\n@@ -1,2 +0,0 @@\n-a\n-b\n");
}

#[test]
fn repeated_lines_give_a_shortest_script() {
    let (old, new) = (["x", "x", "y", "y", "x"], ["x", "y", "x", "x", "y"]);
    let found = diff(&text(&old), &text(&new));
    assert_eq!(patched(&old, &found), new);
    assert_eq!(changed(&found).len(), 4, "{found}");
}

#[test]
fn any_two_texts_become_each_other_by_their_diff() {
    let mut random = fastrand::Rng::with_seed(1);
    let words = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
    for case in 0..3000 {
        let letters = 1 + case % words.len();
        let mut lines = || -> Vec<&str> {
            let lines = random.usize(..if case % 10 == 0 { 300 } else { 12 });
            (0..lines).map(|_| words[random.usize(..letters)]).collect()
        };
        let (old, new) = (lines(), lines());
        let found = diff(&text(&old), &text(&new));
        assert_eq!(patched(&old, &found), new, "{old:?}");
    }
}

#[test]
fn a_line_that_moves_is_the_only_one_that_changes() {
    let old: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let mut new = old.clone();
    let line = new.remove(100);
    new.insert(900, line);
    let found = diff(&old.join("\n"), &new.join("\n"));
    assert_eq!(changed(&found), ["-100", "+100"]);
    assert!(found.contains("@@ -98,7 +98,6 @@") && found.contains("@@ -899,6 +898,7 @@"), "{found}");
}

#[test]
fn texts_that_have_nothing_or_everything_often_in_common_are_compared_in_little_time() {
    let number = |n: usize, word: &str| (0..n).map(|i| format!("{word}{i}")).collect::<Vec<_>>();
    let (a, b) = (number(100_000, "a"), number(100_000, "b"));
    let of = |lines: &[String]| -> String { lines.join("\n") };
    assert_eq!(diff(&of(&a), &of(&b)).lines().count(), 200_003);
    let same = vec!["x".to_string(); 100_000];
    let mixed: Vec<String> = (0..100_000).map(|i| ["x", "y"][i % 2].to_string()).collect();
    assert!(diff(&of(&same), &of(&mixed)).lines().count() > 100_000);
    let reversed: Vec<String> = a.iter().rev().cloned().collect();
    assert!(diff(&of(&a), &of(&reversed)).lines().count() > 100_000);
}
