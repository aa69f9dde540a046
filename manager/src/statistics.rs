//! What passes count.

use std::fmt;

use crate::instruments::table::{clipped, count};

/// Sums of what passes counted with [`PassContext::count`](crate::PassContext::count), in the order in which they were first counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    rows: Vec<Counter>,
}

/// One counter of one pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counter {
    /// The pass; empty for what was counted outside of any.
    pub pass: String,
    /// What is counted.
    pub counter: &'static str,
    /// How many.
    pub value: u64,
}

impl Statistics {
    pub(crate) fn add(&mut self, pass: &str, counter: &'static str, n: u64) {
        // There are a handful of counters.
        match self.rows.iter_mut().find(|r| r.counter == counter && r.pass == pass) {
            Some(row) => row.value = row.value.saturating_add(n),
            None => self.rows.push(Counter { pass: pass.to_string(), counter, value: n }),
        }
    }

    /// The counters.
    pub fn rows(&self) -> &[Counter] {
        &self.rows
    }

    /// What a pass counted; 0 if it counted no such thing.
    ///
    /// Cost: linear in the text.
    pub fn get(&self, pass: &str, counter: &str) -> u64 {
        self.rows.iter().find(|r| r.pass == pass && r.counter == counter).map_or(0, |r| r.value)
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As JSON: a list of `{"pass", "counter", "value"}`.
    pub fn to_json(&self) -> serde_json::Value {
        self.rows
            .iter()
            .map(|r| serde_json::json!({ "pass": r.pass, "counter": r.counter, "value": r.value }))
            .collect()
    }
}

/// A table of at most 80 columns, a counter a line, those of a pass together.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const VALUE: usize = 10;
        const PASS: usize = 32;
        const COUNTER: usize = 80 - PASS - 2 - VALUE - 2;
        if self.rows.is_empty() {
            return writeln!(f, "nothing was counted");
        }
        // Passes in the order in which they first counted something.
        let mut passes: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !passes.contains(&&*row.pass) {
                passes.push(&row.pass);
            }
        }
        let width = passes.iter().map(|p| p.chars().count()).max().unwrap_or(0).clamp("pass".len(), PASS);
        writeln!(f, "{:>VALUE$}  {:width$}  counter", "value", "pass")?;
        for pass in passes {
            let mut shown = clipped(pass, width);
            for Counter { counter, value, .. } in self.rows.iter().filter(|r| r.pass == pass) {
                writeln!(f, "{:>VALUE$}  {shown:width$}  {}", count(*value), clipped(counter, COUNTER))?;
                shown.clear();
            }
        }
        Ok(())
    }
}
