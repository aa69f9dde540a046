//! Modules for another version of the standard operators.

use std::ops::RangeInclusive;

use anfora_ir::{Attr, AttrId, Body, Context, Cursor, Expr, ExprId, FunctionKey, Module, Step};
use anfora_passes::{decompose_where, to_a_normal_form};
use rustc_hash::FxHashMap;

use crate::convert::{Conversions, NEWEST, check_call};
use crate::domains::is_standard;
use crate::error::{ExportError, ExportProblem};
use crate::export::ir_version_for;
use crate::keys;
use crate::opaque::decode;
use crate::stated_opsets::opset_imports;

/// The versions of the standard operators in which models are written.
pub const WRITTEN_OPSETS: RangeInclusive<i64> = 6..=NEWEST;

/// Makes a module that an export writes in a version of the standard operators, whatever version
/// its file has: the module states the version from then on. Calls that the version cannot express
/// are written in other operators, if their rows have a decomposition
/// ([`OpDef::decomposition`](anfora_ir::OpDef::decomposition)). An export refuses the calls that
/// are left.
///
/// Nodes of the standard domain that the import has kept as they are mean what their version says.
/// They can only be written in that version.
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_onnx::convert::Conversions;
/// use anfora_onnx::{ExportOptions, export, set_opset};
///
/// let text = "#![onnx_opsets=[[\"\", 12]]]
///     def @main(%x: Tensor[(n, 4), float32]) { nn.celu(%x) }";
/// let mut module = parse_module(Source::new("example", text), anfora_onnx::registry())?;
/// set_opset(&mut module, 11, &Conversions::default())?;
/// let model = export(&module, &ExportOptions::default())?;
/// assert_eq!(model.nodes.of("Celu"), 0);
/// assert_eq!(model.nodes.of("Exp"), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If models are not written in this version ([`WRITTEN_OPSETS`]), or if a kept node would be
/// written in another version than its own. Also if a row writes steps that do not fit. The module
/// may have been changed in part then.
pub fn set_opset(module: &mut Module, opset: i64, conversions: &Conversions) -> Result<(), ExportError> {
    let fault = |problem| ExportError { function: "main".to_owned(), binding: None, problem };
    if !WRITTEN_OPSETS.contains(&opset) {
        let (first, last) = (WRITTEN_OPSETS.start(), WRITTEN_OPSETS.end());
        let problem = format!("version {opset} of the operators, which is not between {first} and {last},");
        return Err(fault(ExportProblem::Unsupported(problem)));
    }
    let mut imports = opset_imports(module).map_err(fault)?.unwrap_or_default();
    if let Some(&(_, stated)) = imports.iter().find(|(domain, _)| is_standard(domain))
        && stated != opset
    {
        refuse_kept_nodes(module, stated, opset)?;
    }
    let is_other = imports.iter().any(|(domain, stated)| is_standard(domain) && *stated != opset);
    imports.retain(|(domain, _)| !is_standard(domain));
    imports.insert(0, (String::new(), opset));
    state(module, opset, &imports);
    let versions: FxHashMap<String, i64> = imports.into_iter().collect();
    let definitions = module.functions().filter(|(_, f)| f.is_definition());
    let keys: Vec<FunctionKey> = definitions.map(|(key, _)| key).collect();
    for key in keys {
        let name = module.name(key).to_owned();
        let Some((function, cx)) = module.get_mut(key) else { continue };
        if is_other {
            forget_forms(cx, &mut function.body, opset);
        }
        let is_lacking = |cx: &Context, body: &Body, call: ExprId| {
            let count = cx.types.as_tuple(body.ty(call)).map_or(1, <[_]>::len);
            check_call(cx, body, call, &vec![true; count], (conversions, &versions)).is_err()
        };
        to_a_normal_form(cx, &mut function.body);
        if !has_lacking(cx, &function.body, &is_lacking) {
            continue;
        }
        decompose_where(cx, function, is_lacking).map_err(|error| ExportError {
            function: name,
            binding: None,
            problem: ExportProblem::Decomposition(error.to_string()),
        })?;
    }
    Ok(())
}

/// Removes the forms that nodes had in the version of the file: attributes without a meaning, and
/// the attributes of constants, which another version may not have. Before version 9, Constant
/// makes floats only, so constants become initializers.
fn forget_forms(cx: &mut Context, body: &mut Body, opset: i64) {
    let mut variables = Vec::new();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        if let Step::Let(id) = step
            && let Expr::Let { var, .. } = body.expr(id)
        {
            variables.push(var.expr());
        }
    }
    let form = (opset >= 9).then(|| cx.str_attr("value"));
    for id in variables {
        let Some(meta) = body.meta(id) else { continue };
        let mut new = cx.with_attr(meta, keys::CARRIED, None);
        if cx.find_attr(new, keys::CONSTANT).is_some() {
            new = cx.with_attr(new, keys::CONSTANT, form);
        }
        if new != meta {
            body.set_meta(id, Some(new));
        }
    }
}

/// Returns true if a body has a composite call that the version lacks.
fn has_lacking(cx: &Context, body: &Body, is_lacking: &impl Fn(&Context, &Body, ExprId) -> bool) -> bool {
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let (Step::Flat(id) | Step::Enter(id)) = step else { continue };
        if let Expr::CallOp { op, .. } = body.expr(id)
            && !cx.ops.is_opaque(op)
            && cx.ops.get(op).decomposition.is_some()
            && is_lacking(cx, body, id)
        {
            return true;
        }
    }
    false
}

/// Returns an error about the first node of the standard domain that is kept as it is.
fn refuse_kept_nodes(module: &Module, stated: i64, wanted: i64) -> Result<(), ExportError> {
    for (key, function) in module.functions().filter(|(_, f)| f.is_definition()) {
        let body = &function.body;
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            let (Step::Flat(id) | Step::Enter(id)) = step else { continue };
            let Expr::CallOp { op, .. } = body.expr(id) else { continue };
            if !module.cx.ops.is_opaque(op) {
                continue;
            }
            let Some((domain, operator)) = decode(&module.cx.ops.get(op).name) else { continue };
            if is_standard(domain) {
                let binding = cursor.binding().and_then(|at| match body.expr(at) {
                    Expr::Let { var, .. } => body.var_name(var),
                    _ => None,
                });
                return Err(ExportError {
                    function: module.name(key).to_owned(),
                    binding: binding.map(|name| module.cx.names.get(name).to_owned()),
                    problem: ExportProblem::OtherVersion { operator, stated, wanted },
                });
            }
        }
    }
    Ok(())
}

/// States the versions of the operators, and a version of the format that has them.
fn state(module: &mut Module, opset: i64, imports: &[(String, i64)]) {
    let attrs = module.attrs();
    let cx = &mut module.cx;
    let mut pairs: Vec<AttrId> = Vec::with_capacity(imports.len());
    for (domain, version) in imports {
        let pair = Box::new([cx.str_attr(domain), cx.int_attr(*version)]);
        pairs.push(cx.attr(Attr::List(pair)));
    }
    let list = cx.attr(Attr::List(pairs.into()));
    let format = match cx.find_attr(attrs, keys::IR_VERSION).map(|id| cx.attrs.get(id)) {
        Some(&Attr::Int(before)) => before.min(ir_version_for(opset)),
        _ => ir_version_for(opset),
    };
    let format = cx.int_attr(format);
    let attrs = cx.with_attr(attrs, keys::OPSETS, Some(list));
    let attrs = cx.with_attr(attrs, keys::IR_VERSION, Some(format));
    module.set_attrs(attrs);
}
