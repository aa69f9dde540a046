//! The pass with its test at the beginning of the guide: it runs, and the page has it word for
//! word.

#[allow(unreachable_pub, reason = "in the page it is the root of a crate")]
#[path = "guide/first_pass.rs"]
mod first_pass;

#[test]
fn the_guide_begins_with_the_first_pass() {
    let page = include_str!("../docs/guide/README.md");
    let code = include_str!("guide/first_pass.rs");
    assert!(
        page.contains(&format!("```rust\n{code}```\n")),
        "docs/guide/README.md has other code than tests/guide/first_pass.rs"
    );
    assert!(code.lines().count() < 40);
}
