//! The counts of passes.

use std::fmt;

use crate::table::{clipped, count};

/// Sums of the counts that passes left with [`PassContext::count`](crate::PassContext::count), in
/// the order in which the counters first occurred.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    rows: Vec<Counter>,
}

/// One counter of one pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counter {
    /// The name of the pass; empty for a counter outside of any pass.
    pub pass: String,
    /// The name of the counter.
    pub counter: &'static str,
    /// The sum of the counts.
    pub value: u64,
}

impl Statistics {
    pub(crate) fn add(&mut self, pass: &str, counter: &'static str, n: u64) {
        // There are only a few counters.
        match self.rows.iter_mut().find(|r| r.counter == counter && r.pass == pass) {
            Some(row) => row.value = row.value.saturating_add(n),
            None => self.rows.push(Counter { pass: pass.to_string(), counter, value: n }),
        }
    }

    /// Adds the counters of others.
    pub(crate) fn append(&mut self, others: Statistics) {
        others.rows.into_iter().for_each(|row| self.add(&row.pass, row.counter, row.value));
    }

    /// Returns the counters.
    pub fn rows(&self) -> &[Counter] {
        &self.rows
    }

    /// Returns the value of a counter of a pass; 0 if the pass has no such counter.
    ///
    /// Cost: linear in the text.
    pub fn get(&self, pass: &str, counter: &str) -> u64 {
        self.rows.iter().find(|r| r.pass == pass && r.counter == counter).map_or(0, |r| r.value)
    }

    /// Returns true if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns JSON: a list of `{"pass", "counter", "value"}`.
    pub fn to_json(&self) -> serde_json::Value {
        self.rows
            .iter()
            .map(|r| serde_json::json!({ "pass": r.pass, "counter": r.counter, "value": r.value }))
            .collect()
    }
}

/// Writes a table of at most 80 columns, one counter per line, those of a pass together.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const VALUE: usize = 10;
        const PASS: usize = 32;
        const COUNTER: usize = 80 - PASS - 2 - VALUE - 2;
        if self.rows.is_empty() {
            return writeln!(f, "nothing was counted");
        }
        // The passes, in the order in which they first counted something.
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
