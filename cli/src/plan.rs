//! `anfora plan`

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anfora::ir::{Function, Module};
use anfora::manager::{Pass, PassContext, parse_pipeline};
use anfora::passes::{FunctionPlan, LivePoint, MemoryOptions, MemoryPlan, StorageHome, ValuePlace, plan_memory};
use clap::Args;
use serde_json::{Value, json};

use crate::command_line::CommandLine;
use crate::dims;
use crate::file::{self, Format};
use crate::report::Failure;

/// Plans the memory of a program: a storage for each value, and an offset for each storage.
///
/// Prints, for each function, the bytes of all values, the most that are live at once, and those of
/// the arena that holds them; for functions that may be called from outside, also the bytes that
/// are live while each binding is computed. Parameters and constants are not counted. A program
/// that is not in A-normal form is brought into it first.
#[derive(Args)]
pub(crate) struct Plan {
    /// The program: a `.anf` or `.onnx` file, or `-`
    input: PathBuf,
    /// The format of the input
    #[arg(long)]
    from: Option<Format>,
    /// The upper bound of a symbolic dimension
    #[arg(long = "bound", value_name = "NAME=EXTENT")]
    bounds: Vec<String>,
    /// Sizes and offsets are multiples of it
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=65536))]
    alignment: u64,
    /// Prints one JSON object, with the place of each binding
    #[arg(long)]
    json: bool,
}

/// The most lines of a chart, and the columns of its longest bar.
const CHART_LINES: usize = 24;
const BAR_COLUMNS: u64 = 24;

/// The most columns of a name in a chart.
const NAME_COLUMNS: usize = 20;

impl Plan {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let bounds = dims::parse("--bound", &self.bounds)?;
        let mut module = file::load(cli, &self.input, self.from)?.module;
        if let Err(errors) = anfora::ir::verify_module(&module) {
            return Err(Failure::in_module(&errors, &module));
        }
        let registry = Arc::clone(cli.pass_registry());
        let normal = parse_pipeline(&registry, "ToANormalForm").map_err(|e| Failure::Message(e.to_string()))?;
        let context = PassContext::with_registry(registry);
        normal.apply(&mut module, &context).map_err(|e| Failure::Message(e.to_string()))?;
        let bounds = dims::in_module("--bound", &bounds, &module)?;
        let bounds = bounds.into_iter().filter_map(|(name, bound)| Some((name, i64::try_from(bound).ok()?))).collect();
        let options = MemoryOptions { alignment: self.alignment, bounds };
        let plan = plan_memory(&module, &options).map_err(|e| Failure::Message(e.message().to_string()))?;
        let mut out = std::io::stdout().lock();
        if self.json {
            let functions: Vec<Value> = functions(&module, &plan).map(|(f, p)| function_json(&module, f, p)).collect();
            writeln!(out, "{}", json!({ "alignment": self.alignment, "functions": functions }))?;
            return Ok(());
        }
        for (function, planned) in functions(&module, &plan) {
            for line in function_lines(&module, function, planned) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }
}

/// Returns the functions with a body and their plans, in program order.
fn functions<'m>(
    module: &'m Module,
    plan: &'m MemoryPlan,
) -> impl Iterator<Item = (&'m Function, &'m FunctionPlan)> + 'm {
    module.functions().filter_map(|(key, function)| Some((function, plan.function(key)?)))
}

fn binding_name<'m>(module: &'m Module, function: &Function, point: &LivePoint) -> &'m str {
    function.body.var_name(point.binding).map_or("", |name| module.cx.names.get(name))
}

/// Returns the counts of storages outside of the arenas, and of calls without a plan.
fn unplanned(plan: &FunctionPlan) -> [(&'static str, usize); 3] {
    let at = |home: StorageHome| plan.storages().iter().filter(|s| s.home == home).count();
    let calls = plan.scopes().iter().map(|s| s.unplanned_calls as usize).sum();
    [("unbounded", at(StorageHome::Unbounded)), ("escaping", at(StorageHome::Escaping)), ("unplanned calls", calls)]
}

// ---- Text ----

fn function_lines(module: &Module, function: &Function, plan: &FunctionPlan) -> Vec<String> {
    let scope = plan.own_scope();
    let mut lines = vec![format!("@{}", module.name(plan.key()))];
    let rows = [
        ("values", scope.separate, "each in a storage of its own"),
        ("live", scope.live, "the most at once"),
        ("arena", scope.arena, "with the offsets of this plan"),
    ];
    lines.extend(rows.map(|(name, bytes, what)| format!("  {name:8} {:>10}  {what}", bytes_text(bytes))));
    let placed = plan.storages().iter().filter(|s| s.offset().is_some()).count();
    let scopes = plan.scopes().len();
    let plural = if scopes == 1 { "" } else { "s" };
    lines.push(format!("  {:8} {placed:>10}  in arenas, of {scopes} scope{plural}", "storages"));
    for (name, count) in unplanned(plan).into_iter().filter(|&(_, count)| count > 0) {
        lines.push(format!("  {name}: {count}"));
    }
    if function.is_external(&module.cx) && scope.live > 0 {
        lines.extend(chart(module, function, plan));
    }
    lines
}

/// Returns a chart of the live bytes. A line stands for neighbouring bindings, and shows the one
/// with the most.
fn chart(module: &Module, function: &Function, plan: &FunctionPlan) -> Vec<String> {
    let points = plan.live_points();
    let most = points.iter().map(|p| p.bytes).max().unwrap_or(0).max(1);
    let per_line = points.len().div_ceil(CHART_LINES).max(1);
    let highest = |group: &[LivePoint]| group.iter().rev().max_by_key(|p| p.bytes).copied();
    points
        .chunks(per_line)
        .filter_map(highest)
        .map(|point| {
            let columns = (u128::from(point.bytes) * u128::from(BAR_COLUMNS)).div_ceil(u128::from(most)) as usize;
            let name: String = binding_name(module, function, &point).chars().take(NAME_COLUMNS).collect();
            let line = format!("  %{name:NAME_COLUMNS$} {:>10} {}", bytes_text(point.bytes), "#".repeat(columns));
            line.trim_end().to_string()
        })
        .collect()
}

fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut text = format!("{bytes} B");
    for unit in UNITS {
        // Compared as it will be rounded.
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        text = format!("{value:.1} {unit}");
    }
    text
}

// ---- JSON ----

fn function_json(module: &Module, function: &Function, plan: &FunctionPlan) -> Value {
    let scope = plan.own_scope();
    let [unbounded, escaping, unplanned_calls] = unplanned(plan).map(|(_, count)| count);
    let bindings: Vec<Value> = plan
        .live_points()
        .iter()
        .map(|point| {
            json!({
                "name": binding_name(module, function, point),
                "live": point.bytes,
                "place": place_json(plan.place_of(point.binding)),
            })
        })
        .collect();
    let storages: Vec<Value> = plan
        .storages()
        .iter()
        .map(|s| json!({ "scope": s.scope, "first": s.first, "last": s.last, "bytes": s.bytes, "offset": s.offset() }))
        .collect();
    json!({
        "name": module.name(plan.key()),
        "values": scope.separate,
        "live": scope.live,
        "arena": scope.arena,
        "unbounded": unbounded,
        "escaping": escaping,
        "unplanned_calls": unplanned_calls,
        "bindings": bindings,
        "storages": storages,
    })
}

/// Returns the index of a storage, a list of those of the fields of a tuple, or null. Tuples in
/// tuples are not written out, since they may share parts very often.
fn place_json(place: ValuePlace<'_>) -> Value {
    let one = |place: ValuePlace<'_>| match place {
        ValuePlace::Storage(id) | ValuePlace::Within(id) => json!(id),
        ValuePlace::Outside | ValuePlace::Tuple(_) | ValuePlace::Held => Value::Null,
    };
    match place {
        ValuePlace::Tuple(places) => (0..places.len()).map(|i| one(places.field(i))).collect(),
        place => one(place),
    }
}
