//! `anfora passes`, `ops`, `onnx-ops`, `configs`, `pipelines`

use std::collections::HashMap;
use std::io::Write;

use anfora::ir::{AttrDef, AttrDefault, OpDef, OpPurity, PrecisionPolicy};
use anfora::manager::{ConfigDef, ConfigKind, PassRegistry, RegisteredPass};
use anfora::onnx::convert::Conversion;
use anfora::onnx::{KnownOperator, known_operators};
use clap::Args;
use serde_json::{Value, json};

use crate::command_line::CommandLine;
use crate::report::Failure;

/// Lists passes, operators, settings or pipelines.
#[derive(Args)]
pub(crate) struct List {
    /// Prints JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Returns a setting or an option as JSON: its key, type, range of values, default and
/// documentation.
fn setting(def: &ConfigDef) -> Value {
    let mut json = json!({ "key": def.key, "default": def.default.to_string(), "doc": def.doc });
    match def.kind {
        ConfigKind::Int { min, max } => {
            json["type"] = "int".into();
            json["min"] = min.into();
            json["max"] = max.into();
        }
        ConfigKind::Bool => json["type"] = "bool".into(),
        ConfigKind::Str => json["type"] = "text".into(),
        ConfigKind::OneOf(words) => {
            json["type"] = "choice".into();
            json["values"] = words.into();
        }
        ConfigKind::Limit => json["type"] = "limit".into(),
        ConfigKind::Float { min, max } => {
            json["type"] = "float".into();
            json["min"] = min.into();
            json["max"] = max.into();
        }
        ConfigKind::IntList { min, max } => {
            json["type"] = "int list".into();
            json["min"] = min.into();
            json["max"] = max.into();
        }
        ConfigKind::TextList { words } => {
            json["type"] = "text list".into();
            if let Some(words) = words {
                json["values"] = words.into();
            }
        }
        ConfigKind::Numbers { min, max } => {
            json["type"] = "numbers".into();
            json["min"] = min.into();
            json["max"] = max.into();
        }
    }
    json
}

/// Returns an option with its default, as pipelines write it.
fn written(option: &ConfigDef) -> String {
    match option.kind {
        ConfigKind::Numbers { .. } => "{NAME=NUMBER}".to_string(),
        _ => format!("{{{}={}}}", option.key, option.default),
    }
}

/// Returns the lines of text about options.
fn option_lines(options: &[ConfigDef]) -> Vec<String> {
    options.iter().map(|o| format!("{}  {}: {}", written(o), o.kind, o.doc)).collect()
}

/// A row of a list, as text and as JSON.
struct Row {
    name: String,
    doc: String,
    details: Vec<String>,
    json: Value,
}

/// Returns the row of an operator, with its entries in the table of ONNX conversions.
fn operator(op: &OpDef, conversions: &[&Conversion]) -> Row {
    // The attributes, for JSON.
    let kind = |a: &AttrDef| format!("{:?}", a.kind).to_lowercase();
    let attrs: Vec<Value> = op
        .attrs
        .iter()
        .map(|a| {
            json!({
                "name": a.name,
                "type": kind(a),
                "required": a.default == AttrDefault::Required,
                "default": default_value(a.default),
                "doc": a.doc,
            })
        })
        .collect();
    // The lines of text: facts, attributes and conversions.
    let mut details = vec![facts(op)];
    details.extend(op.attrs.iter().map(|a| {
        let default = match a.default {
            AttrDefault::Required => String::new(),
            AttrDefault::Absent => " = none".to_owned(),
            other => format!(" = {}", default_value(other)),
        };
        format!("{}: {}{default}  {}", a.name, kind(a), a.doc)
    }));
    details.extend(conversions.iter().map(|c| {
        let dot = if c.domain.is_empty() { "" } else { "." };
        let directions = match (c.import.is_some(), c.export.is_some()) {
            (true, true) => "read and written",
            (true, false) => "read",
            _ => "written",
        };
        let versions = match (c.opsets.start(), c.opsets.end()) {
            (from, to) if from == to => format!("version {from}"),
            (from, to) => format!("versions {from} to {to}"),
        };
        format!("ONNX {}{dot}{}, {versions}: {directions}", c.domain, c.onnx)
    }));
    // The conversions, for JSON.
    let onnx: Vec<Value> = conversions
        .iter()
        .map(|c| {
            json!({
                "domain": c.domain,
                "operator": c.onnx,
                "from": c.opsets.start(),
                "to": c.opsets.end(),
                "import": c.import.is_some(),
                "export": c.export.is_some(),
            })
        })
        .collect();
    Row {
        name: op.name.to_string(),
        doc: op.doc.to_string(),
        details,
        json: json!({
            "name": op.name,
            "doc": op.doc,
            "operands": { "min": op.arity.min, "max": op.arity.max },
            "attributes": attrs,
            "pure": op.purity == OpPurity::Pure,
            "may_fail": op.may_fail,
            "commutative": op.commutative,
            "fusion": format!("{:?}", op.fusion),
            "kernel": op.kernel.is_some(),
            "composite": op.decomposition.is_some(),
            "precision": format!("{:?}", op.precision),
            "adjoint": op.adjoint.is_some(),
            "known_by_type": op.known_by_type.is_some(),
            "splat": format!("{:?}", op.splat),
            "shape_operands": op.shape_operands,
            "forwards": op.forwards,
            "relabels": op.relabels,
            "onnx": onnx,
        }),
    }
}

/// Returns the row of an operator of ONNX, for a range of versions.
fn known_operator(op: KnownOperator) -> Row {
    let KnownOperator { domain, op_type, since, until, is_pure, outputs, repeats } = op;
    let dot = if domain.is_empty() { "" } else { "." };
    let purity = if is_pure { "pure" } else { "impure" };
    let more = if repeats { ", repeated" } else { "" };
    Row {
        name: format!("{domain}{dot}{op_type}"),
        doc: format!("versions {since} to {until}, {purity}"),
        details: vec![format!("outputs: {}{more}", outputs.join("; "))],
        json: json!({
            "domain": domain,
            "operator": op_type,
            "from": since,
            "to": until,
            "pure": is_pure,
            "outputs": outputs,
            "repeats": repeats,
        }),
    }
}

/// Returns the facts about an operator other than its name and attributes, in one line.
fn facts(op: &OpDef) -> String {
    let operands = match (op.arity.min, op.arity.max) {
        (1, Some(1)) => "1 operand".to_owned(),
        (min, Some(max)) if min == max => format!("{min} operands"),
        (min, Some(max)) => format!("{min} to {max} operands"),
        (min, None) => format!("{min} operands or more"),
    };
    let mut facts = vec![operands, if op.purity == OpPurity::Pure { "pure" } else { "impure" }.to_owned()];
    let by_attributes = if op.fusion_rule.is_some() { ", or as its attributes say" } else { "" };
    facts.push(format!("fused as {:?}{by_attributes}", op.fusion));
    facts.push(if op.kernel.is_some() { "has a kernel" } else { "has no kernel" }.to_owned());
    facts.extend(op.decomposition.map(|_| "written in other operators by DecomposeOps".to_owned()));
    facts.extend(match op.precision {
        PrecisionPolicy::Always => Some("always in 16 bits by ToMixedPrecision".to_owned()),
        PrecisionPolicy::Follow => Some("in 16 bits by ToMixedPrecision if its operands are".to_owned()),
        PrecisionPolicy::Never => None,
    });
    facts.extend(op.adjoint.map(|_| "has an adjoint for Gradient".to_owned()));
    facts.extend(op.may_fail.then(|| "may fail".to_owned()));
    facts.extend(op.commutative.then(|| "commutative".to_owned()));
    facts.extend(op.relabels.then(|| "moves no elements".to_owned()));
    facts.extend(op.known_by_type.map(|_| "known by the types of its operands".to_owned()));
    facts.join(", ")
}

/// Returns the default value of an attribute, or null if it has none.
fn default_value(default: AttrDefault) -> Value {
    match default {
        AttrDefault::Required | AttrDefault::Absent => Value::Null,
        AttrDefault::Bool(b) => b.into(),
        AttrDefault::Int(i) => i.into(),
        AttrDefault::Float(f) => f.into(),
        AttrDefault::Str(s) => s.into(),
        AttrDefault::Ints(i) => i.into(),
        AttrDefault::DType(d) => d.to_string().into(),
    }
}

impl List {
    pub(crate) fn passes(self, cli: &CommandLine) -> Result<(), Failure> {
        let registry = cli.pass_registry();
        let rows = registry.passes().iter().map(|p| {
            let own = format!("{}.", p.name());
            let settings: Vec<_> = registry.configs().iter().filter(|c| c.key.starts_with(&own)).collect();
            let mut details = option_lines(p.options());
            details.extend(settings.iter().map(|c| format!("{}={}  {}: {}", c.key, c.default, c.kind, c.doc)));
            let [needs, establishes, breaks] = properties(registry, p);
            let said = [("needs", &needs), ("establishes", &establishes), ("breaks", &breaks)];
            let said: Vec<String> = said
                .iter()
                .filter(|(_, names)| !names.is_empty())
                .map(|(verb, names)| format!("{verb} {}", names.join(", ")))
                .collect();
            if !said.is_empty() {
                details.push(said.join("; "));
            }
            let json_options: Vec<Value> = p.options().iter().map(setting).collect();
            Row {
                name: p.name().to_string(),
                doc: format!("level {}  {}", p.opt_level(), p.doc()),
                details,
                json: json!({
                    "name": p.name(),
                    "level": p.opt_level(),
                    "doc": p.doc(),
                    "options": json_options,
                    "configs": settings.iter().map(|c| c.key).collect::<Vec<_>>(),
                    "needs": needs,
                    "establishes": establishes,
                    "breaks": breaks,
                }),
            }
        });
        self.print(rows.collect())
    }

    pub(crate) fn ops(self, cli: &CommandLine) -> Result<(), Failure> {
        let mut in_onnx: HashMap<&str, Vec<&Conversion>> = HashMap::new();
        for row in cli.conversion_table().rows() {
            in_onnx.entry(&row.native).or_default().push(row);
        }
        let rows = cli
            .op_registry()
            .rows()
            .map(|(_, op)| operator(op, in_onnx.get(op.name.as_ref()).map_or(&[], Vec::as_slice)));
        self.print(rows.collect())
    }

    pub(crate) fn onnx_ops(self) -> Result<(), Failure> {
        self.print(known_operators().map(known_operator).collect())
    }

    pub(crate) fn configs(self, cli: &CommandLine) -> Result<(), Failure> {
        let registry = cli.pass_registry();
        let rows = registry.configs().iter().map(|c| Row {
            name: c.key.to_string(),
            doc: format!("{} ({}; default {})", c.doc, c.kind, c.default),
            details: Vec::new(),
            json: setting(c),
        });
        self.print(rows.collect())
    }

    pub(crate) fn pipelines(self, cli: &CommandLine) -> Result<(), Failure> {
        let registry = cli.pass_registry();
        let rows = registry.pipelines().iter().map(|p| {
            let mut details = if p.text.is_empty() { Vec::new() } else { vec![p.text.clone()] };
            details.extend(option_lines(p.options));
            let json_options: Vec<Value> = p.options.iter().map(setting).collect();
            let mut json = json!({ "name": p.name, "passes": p.text, "options": json_options, "doc": p.doc });
            if let Some(entry) = registry.phases().iter().find(|e| e.pipeline_name() == p.name) {
                let holding = registry.holding_from(entry.phase);
                details.push(format!("then these hold: {}", holding.join(", ")));
                json["phase"] = json!(entry.phase.to_string());
                json["holds"] = json!(holding);
            }
            Row { name: p.name.clone(), doc: p.doc.clone(), details, json }
        });
        self.print(rows.collect())
    }

    fn print(self, rows: Vec<Row>) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        let width = rows.iter().map(|r| r.name.len()).max().unwrap_or(0);
        for row in rows {
            if self.json {
                writeln!(out, "{}", row.json)?;
                continue;
            }
            writeln!(out, "{:width$}  {}", row.name, row.doc)?;
            for detail in row.details {
                writeln!(out, "{:width$}    {detail}", "")?;
            }
        }
        Ok(())
    }
}

/// Returns the properties that a pass needs, establishes and breaks, with its options at their
/// defaults.
fn properties(registry: &PassRegistry, pass: &RegisteredPass) -> [Vec<String>; 3] {
    registry.make(pass.name()).map_or_else(
        |_| [const { Vec::new() }; 3],
        |made| [&made.info().needs, &made.info().establishes, &made.info().breaks].map(Clone::clone),
    )
}
