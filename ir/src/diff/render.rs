//! Differences as lines of text and as JSON.

use std::fmt;

use crate::report::render::json::{field, string};

use super::{
    ChangedPart, DifferenceKind, Differences, FunctionDifference, ItemDifference, ItemKind, PartChange, describe,
};

/// One line for each difference: the function, the binding, and what changed.
impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.module.is_empty() {
            f.write_str("module: ")?;
            changes(f, &self.module)?;
            f.write_str("\n")?;
        }
        self.functions.iter().try_for_each(|function| write!(f, "{function}"))
    }
}

impl fmt::Display for FunctionDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = match (&self.left, &self.right) {
            (Some(left), Some(right)) if left != right => {
                format!("{} (now {})", describe::global(left), describe::global(right))
            }
            (Some(name), _) | (None, Some(name)) => describe::global(name),
            (None, None) => "a function".to_string(),
        };
        match self.kind {
            DifferenceKind::Added => writeln!(f, "{head}: added, with {}", bindings(self.bindings))?,
            DifferenceKind::Removed => writeln!(f, "{head}: removed, with {}", bindings(self.bindings))?,
            DifferenceKind::Changed => {}
        }
        if !self.changes.is_empty() {
            write!(f, "{head}: ")?;
            changes(f, &self.changes)?;
            f.write_str("\n")?;
        }
        self.items.iter().try_for_each(|item| writeln!(f, "{head} {item}"))
    }
}

fn bindings(n: usize) -> String {
    if n == 1 { "1 binding".to_string() } else { format!("{n} bindings") }
}

impl fmt::Display for ItemDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.item {
            ItemKind::Parameter => "parameter ",
            ItemKind::Binding => "",
            ItemKind::Expression => "expression",
            ItemKind::Result => "result",
        })?;
        if matches!(self.item, ItemKind::Parameter | ItemKind::Binding) {
            let name = |name: &Option<String>| describe::variable(name.as_deref());
            match self.kind {
                DifferenceKind::Added => f.write_str(&name(&self.right))?,
                DifferenceKind::Removed => f.write_str(&name(&self.left))?,
                DifferenceKind::Changed if self.left == self.right => f.write_str(&name(&self.left))?,
                DifferenceKind::Changed => write!(f, "{} (now {})", name(&self.left), name(&self.right))?,
            }
        }
        if let Some(place) = &self.place {
            write!(f, " in {place}")?;
        }
        f.write_str(": ")?;
        match self.kind {
            DifferenceKind::Added => f.write_str("added")?,
            DifferenceKind::Removed => f.write_str("removed")?,
            DifferenceKind::Changed => changes(f, &self.changes)?,
        }
        if let Some(text) = &self.text {
            write!(f, ": {text}")?;
        }
        if self.nested > 0 {
            write!(f, ", with {}", bindings(self.nested))?;
        }
        Ok(())
    }
}

fn changes(f: &mut fmt::Formatter<'_>, list: &[PartChange]) -> fmt::Result {
    for (i, change) in list.iter().enumerate() {
        write!(f, "{}{change}", if i > 0 { "; " } else { "" })?;
    }
    Ok(())
}

/// `attribute pads [0, 0] -> [1, 1]`
impl fmt::Display for PartChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.part)?;
        match (&self.left, &self.right) {
            (Some(left), Some(right)) => write!(f, " {left} -> {right}")?,
            (Some(left), None) => write!(f, " removed, was {left}")?,
            (None, Some(right)) => write!(f, " added: {right}")?,
            (None, None) => {}
        }
        match &self.note {
            Some(note) => write!(f, " ({note})"),
            None => Ok(()),
        }
    }
}

impl ChangedPart {
    /// Returns the kind of the part as one word.
    pub fn word(&self) -> &'static str {
        match self {
            ChangedPart::Name => "name",
            ChangedPart::Visibility => "visibility",
            ChangedPart::Definition => "definition",
            ChangedPart::Value => "value",
            ChangedPart::Operator => "operator",
            ChangedPart::Callee => "callee",
            ChangedPart::Operand(_) => "operand",
            ChangedPart::Condition => "condition",
            ChangedPart::FieldIndex => "field",
            ChangedPart::Attribute(_) => "attribute",
            ChangedPart::Metadata(_) => "metadata",
            ChangedPart::Type => "type",
            ChangedPart::ResultType => "result-type",
            ChangedPart::Position => "position",
            ChangedPart::Dataflow => "dataflow",
            ChangedPart::Structure => "structure",
        }
    }
}

impl fmt::Display for ChangedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangedPart::Operand(i) => write!(f, "operand {i}"),
            ChangedPart::Attribute(name) => write!(f, "attribute {name}"),
            ChangedPart::Metadata(name) => write!(f, "#[{name}]"),
            ChangedPart::ResultType => f.write_str("result type"),
            ChangedPart::Name => f.write_str("renamed"),
            ChangedPart::Position => f.write_str("moved"),
            part => f.write_str(part.word()),
        }
    }
}

impl DifferenceKind {
    /// Returns the kind as one word.
    pub fn word(self) -> &'static str {
        match self {
            DifferenceKind::Added => "added",
            DifferenceKind::Removed => "removed",
            DifferenceKind::Changed => "changed",
        }
    }
}

impl ItemKind {
    /// Returns the kind as one word.
    pub fn word(self) -> &'static str {
        match self {
            ItemKind::Parameter => "parameter",
            ItemKind::Binding => "binding",
            ItemKind::Expression => "expression",
            ItemKind::Result => "result",
        }
    }
}

impl Differences {
    /// Returns the differences as a JSON object, with a line for each difference.
    ///
    /// The object has `module`, a list of changes, and `functions`, a list of objects. A function
    /// has `kind` (`added`, `removed` or `changed`), its names `left` and `right`, `bindings` (of
    /// one that was added or removed), `changes` (of the signature) and `items`. An item has
    /// `kind`, `item` (`parameter`, `binding`, `expression` or `result`), the names `left` and
    /// `right`, `place`, `right_place`, `text`, `nested` and `changes`. A change has `part`, the
    /// `name` or `index` of the part, and the texts `left`, `right` and `note`. Fields without a
    /// value are left out.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\"module\":");
        json_changes(&mut out, &self.module);
        out.push_str(",\"functions\":[");
        for (i, function) in self.functions.iter().enumerate() {
            out.push_str(if i > 0 { ",\n" } else { "\n" });
            json_function(&mut out, function);
        }
        out.push_str(if self.functions.is_empty() { "]}" } else { "\n]}" });
        out
    }
}

fn json_function(out: &mut String, function: &FunctionDifference) {
    field(out, '{', "kind", function.kind.word());
    json_texts(out, &[("left", &function.left), ("right", &function.right)]);
    if function.bindings > 0 {
        json_number(out, "bindings", function.bindings);
    }
    out.push_str(",\"changes\":");
    json_changes(out, &function.changes);
    out.push_str(",\"items\":[");
    for (i, item) in function.items.iter().enumerate() {
        out.push_str(if i > 0 { ",\n" } else { "\n" });
        field(out, '{', "kind", item.kind.word());
        field(out, ',', "item", item.item.word());
        json_texts(out, &[("left", &item.left), ("right", &item.right), ("place", &item.place)]);
        json_texts(out, &[("right_place", &item.right_place), ("text", &item.text)]);
        if item.nested > 0 {
            json_number(out, "nested", item.nested);
        }
        out.push_str(",\"changes\":");
        json_changes(out, &item.changes);
        out.push('}');
    }
    out.push_str("]}");
}

fn json_texts(out: &mut String, texts: &[(&str, &Option<String>)]) {
    for (key, text) in texts {
        if let Some(text) = text {
            field(out, ',', key, text);
        }
    }
}

fn json_number(out: &mut String, key: &str, number: usize) {
    out.push(',');
    string(out, key);
    out.push(':');
    out.push_str(itoa::Buffer::new().format(number));
}

fn json_changes(out: &mut String, changes: &[PartChange]) {
    out.push('[');
    for (i, PartChange { part, left, right, note }) in changes.iter().enumerate() {
        out.push_str(if i > 0 { "," } else { "" });
        field(out, '{', "part", part.word());
        match part {
            ChangedPart::Operand(i) => json_number(out, "index", *i),
            ChangedPart::Attribute(name) | ChangedPart::Metadata(name) => field(out, ',', "name", name),
            _ => {}
        }
        json_texts(out, &[("left", left), ("right", right), ("note", note)]);
        out.push('}');
    }
    out.push(']');
}
