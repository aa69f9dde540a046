//! What passes count.

use std::fmt;

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

/// A table of at most 80 columns, a counter a line.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|r| r.value.to_string().len()).max().unwrap_or(0);
        for Counter { pass, counter, value } in &self.rows {
            let names: String = format!("{pass}: {counter}").chars().take(77 - width.min(40)).collect();
            writeln!(f, "{value:>width$}  {names}")?;
        }
        Ok(())
    }
}
