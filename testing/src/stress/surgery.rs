//! The edits of `anfora::surgery`.

use std::collections::HashMap;

use anfora::onnx;
use anfora::surgery::{AttributeEdit, NewExtent, Part, Renames, extract, rename, set_attributes, set_shapes};
use anfora::visit::chain;
use anfora_ir::{Diagnostics, Expr, Module};

use super::{Done, Kind, Row, ensure};

pub(super) const ROWS: &[Row] = &[
    Row { name: "extract", covers: &[], kind: Kind::Module(extract_parts) },
    Row { name: "rename", covers: &[], kind: Kind::Module(rename_all) },
    Row { name: "set-shape", covers: &[], kind: Kind::Module(reshape_inputs) },
    Row { name: "set-attribute", covers: &[], kind: Kind::Module(set_unknown_attribute) },
    Row {
        name: "file-names",
        covers: &["onnx::for_each_file_name", "onnx::forget_stated_types", "onnx::rename_in_file"],
        kind: Kind::Module(edit_file_names),
    },
];

/// Returns the names of the bindings of the block of `@main`, in order.
fn names_in_main(module: &Module) -> Vec<String> {
    let Some(main) = module.find("main").and_then(|key| module.get(key)) else { return Vec::new() };
    let vars = chain(&main.body, main.body.root()).map(|b| b.var);
    vars.filter_map(|var| Some(module.cx.names.get(main.body.var_name(var)?).to_string())).collect()
}

/// An edit may be refused, with reasons, and then changes nothing.
fn is_done(before: &str, module: &Module, done: Result<(), Diagnostics>) -> Done {
    match done {
        Ok(()) => Ok(()),
        Err(errors) => {
            ensure(!errors.is_empty(), "a refusal has a reason")?;
            ensure(module.to_text() == before, "a refused edit changes nothing")
        }
    }
}

fn extract_parts(mut module: Module) -> Done {
    let whole = Part::default();
    extract(&mut module, "main", &whole).map_err(|e| e.to_string())?;
    let names = names_in_main(&module);
    let (Some(first), Some(last)) = (names.first(), names.last()) else { return Ok(()) };
    // What is before the last value, and what is between the first and the last.
    for inputs in [None, Some(vec![first.clone()])] {
        let mut part = module.clone();
        let before = part.to_text();
        let done = extract(&mut part, "main", &Part { inputs, outputs: Some(vec![last.clone()]) });
        is_done(&before, &part, done)?;
    }
    Ok(())
}

fn rename_all(mut module: Module) -> Done {
    let mut names = names_in_main(&module);
    names.sort_unstable();
    names.dedup();
    let before = module.to_text();
    let values = names.into_iter().map(|name| (name.clone(), format!("{name}_renamed"))).collect();
    let functions = vec![("main".to_string(), "renamed".to_string())];
    let done = rename(&mut module, "main", &Renames { values, functions, ..Renames::default() });
    is_done(&before, &module, done)?;
    let symbols = vec![("n".to_string(), "m".to_string())];
    let before = module.to_text();
    let done = rename(&mut module, "renamed", &Renames { symbols, ..Renames::default() });
    is_done(&before, &module, done)
}

fn reshape_inputs(mut module: Module) -> Done {
    let Some(main) = module.find("main").and_then(|key| module.get(key)) else { return Ok(()) };
    let (cx, body) = (&module.cx, &main.body);
    let mut shapes = Vec::new();
    for &param in body.params() {
        let shape = cx.types.as_tensor(body.ty(param.expr())).and_then(|t| t.shape.as_ref());
        if let Some((shape, name)) = shape.zip(body.var_name(param)) {
            let extents = (0..shape.len()).map(|axis| NewExtent::Named(format!("axis_{axis}"))).collect();
            shapes.push((cx.names.get(name).to_string(), extents));
        }
    }
    let before = module.to_text();
    let done = set_shapes(&mut module, "main", &shapes);
    is_done(&before, &module, done)
}

/// Calls of the operator take no such attribute, which is found at the end of the edit.
fn set_unknown_attribute(mut module: Module) -> Done {
    let Some(main) = module.find("main").and_then(|key| module.get(key)) else { return Ok(()) };
    let is_call = |value| matches!(main.body.expr(value), Expr::CallOp { .. });
    let last = chain(&main.body, main.body.root()).filter(|b| is_call(b.value)).last();
    let name = last.and_then(|b| main.body.var_name(b.var)).map(|name| module.cx.names.get(name).to_string());
    let before = module.to_text();
    let edits = [AttributeEdit::new(&name.unwrap_or_default(), "no_such_attribute", 1)];
    let done = set_attributes(&mut module, "main", &edits);
    ensure(done.is_err(), "an unknown attribute is refused")?;
    is_done(&before, &module, done)
}

/// Edits the metadata that programs without a file do not have.
fn edit_file_names(mut module: Module) -> Done {
    let Some(key) = module.find("main") else { return Ok(()) };
    let Some((main, cx)) = module.get_mut(key) else { return Ok(()) };
    let mut names = 0;
    onnx::for_each_file_name(cx, main, |_| names += 1);
    ensure(names == 0, "the program was in no file")?;
    onnx::rename_in_file(cx, main, &HashMap::from([("x".to_string(), "y".to_string())]));
    onnx::forget_stated_types(cx, main);
    Ok(())
}
