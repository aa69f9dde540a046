//! `anfora passes`, `ops`, `configs`, `pipelines`

use std::io::Write;

use anfora::ir::{AttrDef, AttrDefault};
use anfora::manager::{ConfigDef, ConfigKind, PassRegistry, RegisteredPass};
use clap::Args;
use serde_json::{Value, json};

use crate::report::Failure;

/// Lists what there is.
#[derive(Args)]
pub(crate) struct List {
    /// Prints JSON, an object a line
    #[arg(long)]
    json: bool,
}

/// A setting or an option: its type, the range of its values, and its default as it is written.
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
        ConfigKind::Bytes => json["type"] = "bytes".into(),
    }
    json
}

/// What a row of a list shows, and the same as JSON.
struct Row {
    name: String,
    doc: String,
    details: Vec<String>,
    json: Value,
}

impl List {
    pub(crate) fn passes(self) -> Result<(), Failure> {
        let registry = anfora::passes::registry();
        let rows = registry.passes().iter().map(|p| {
            let own = format!("{}.", p.name());
            let settings: Vec<_> = registry.configs().iter().filter(|c| c.key.starts_with(&own)).collect();
            let mut details: Vec<String> =
                p.options().iter().map(|o| format!("{{{}={}}}  {}: {}", o.key, o.default, o.kind, o.doc)).collect();
            details.extend(settings.iter().map(|c| format!("{}={}  {}: {}", c.key, c.default, c.kind, c.doc)));
            let [needs, establishes, breaks] = properties(&registry, p);
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

    pub(crate) fn ops(self) -> Result<(), Failure> {
        let registry = anfora::onnx::registry();
        let rows = registry.rows().map(|(_, op)| {
            let kind = |a: &AttrDef| format!("{:?}", a.kind).to_lowercase();
            let attrs: Vec<Value> = op
                .attrs
                .iter()
                .map(|a| json!({ "name": a.name, "type": kind(a), "required": a.default == AttrDefault::Required, "doc": a.doc }))
                .collect();
            let details = op.attrs.iter().map(|a| format!("{}  {}: {}", a.name, kind(a), a.doc)).collect();
            Row {
                name: op.name.to_string(),
                doc: op.doc.to_string(),
                details,
                json: json!({
                    "name": op.name,
                    "doc": op.doc,
                    "operands": { "min": op.arity.min, "max": op.arity.max },
                    "attributes": attrs,
                    "pure": op.purity == anfora::ir::OpPurity::Pure,
                    "fusion": format!("{:?}", op.fusion),
                    "kernel": op.kernel.is_some(),
                }),
            }
        });
        self.print(rows.collect())
    }

    pub(crate) fn configs(self) -> Result<(), Failure> {
        let registry = anfora::passes::registry();
        let rows = registry.configs().iter().map(|c| Row {
            name: c.key.to_string(),
            doc: format!("{} ({}; default {})", c.doc, c.kind, c.default),
            details: Vec::new(),
            json: setting(c),
        });
        self.print(rows.collect())
    }

    pub(crate) fn pipelines(self) -> Result<(), Failure> {
        let registry = anfora::passes::registry();
        let rows = registry.pipelines().iter().map(|p| {
            let mut details = if p.text.is_empty() { Vec::new() } else { vec![p.text.clone()] };
            let mut json = json!({ "name": p.name, "passes": p.text, "doc": p.doc });
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

/// What a pass needs, establishes and breaks, with its options at their defaults.
fn properties(registry: &PassRegistry, pass: &RegisteredPass) -> [Vec<String>; 3] {
    registry.make(pass.name()).map_or_else(
        |_| [const { Vec::new() }; 3],
        |made| [&made.info().needs, &made.info().establishes, &made.info().breaks].map(Clone::clone),
    )
}
