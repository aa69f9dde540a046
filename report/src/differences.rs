//! The page of the differences of two programs.

use std::borrow::Cow;

use anfora_ir::Differences;
use askama::Template;
use serde_json::{Value, json};

use crate::in_script;

/// The most differences of a page. More of them nobody reads.
const MOST_DIFFERENCES: usize = 20_000;

/// A page that shows the differences of two programs, by function and binding.
///
/// ```
/// use anfora_ir::{Source, diff, parse_module};
/// use anfora_report::DiffPage;
///
/// let parsed = |text| parse_module(Source::new("text", text), anfora_ops::standard());
/// let old = parsed("def @main(%x: Tensor[(2,), float32]) { exp(%x) }")?;
/// let new = parsed("def @main(%x: Tensor[(2,), float32]) { tanh(%x) }")?;
///
/// let differences = diff(&old, &new);
/// let page = DiffPage::new(&differences, "old.anf", "new.anf").to_html();
/// assert!(page.contains("<title>old.anf → new.anf"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiffPage<'d> {
    /// The differences. A page has at most 20,000 of them, and tells how many more there are.
    pub differences: &'d Differences,
    /// The name of the left program.
    pub left: &'d str,
    /// The name of the right program.
    pub right: &'d str,
    /// The command that makes the same page; empty if there is none.
    pub command: &'d str,
    /// Further facts about the programs, each with its name.
    pub facts: Vec<(String, String)>,
}

/// The script of the page.
const PROGRAM: &str = concat!(include_str!("../assets/elements.js"), include_str!("../assets/differences.js"));

/// The style of the page.
const STYLE: &str = concat!(include_str!("../assets/page.css"), include_str!("../assets/differences.css"));

#[derive(Template)]
#[template(path = "differences.html")]
struct DiffTemplate {
    title: String,
    style: &'static str,
    program: &'static str,
    data: String,
}

impl<'d> DiffPage<'d> {
    /// Returns a page without a command and facts.
    ///
    /// Cost: one entry.
    pub fn new(differences: &'d Differences, left: &'d str, right: &'d str) -> DiffPage<'d> {
        DiffPage { differences, left, right, command: "", facts: Vec::new() }
    }

    /// Returns the page as HTML. Linear in the differences.
    pub fn to_html(&self) -> String {
        let kept = first(self.differences, MOST_DIFFERENCES);
        let differences: Value = serde_json::from_str(&kept.to_json()).expect("differences are valid JSON");
        let data = json!({
            "left": self.left,
            "right": self.right,
            "command": self.command,
            "facts": self.facts,
            "count": self.differences.len(),
            "left_out": self.differences.len() - kept.len(),
            "differences": differences,
        });
        let template = DiffTemplate {
            title: format!("{} → {}", self.left, self.right),
            style: STYLE,
            program: PROGRAM,
            data: in_script(&data),
        };
        template.render().expect("writing to a string succeeds")
    }
}

/// Returns the first differences.
fn first(all: &Differences, most: usize) -> Cow<'_, Differences> {
    if all.len() <= most {
        return Cow::Borrowed(all);
    }
    let mut kept = Differences { module: all.module.clone(), functions: Vec::new() };
    for function in &all.functions {
        // The function itself may count too.
        let Some(left) = most.checked_sub(kept.len() + 1).filter(|&left| left > 0) else { break };
        let mut function = function.clone();
        function.items.truncate(left);
        kept.functions.push(function);
    }
    Cow::Owned(kept)
}
