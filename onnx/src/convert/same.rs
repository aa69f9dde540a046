//! Operators that are the same in ONNX and here, attributes included.

use anfora_ir::{Attr, AttrId, AttrKind, AttrReader, Context, DType};

use super::{
    Conversion, Lowered, NodeExport, NodeImport, float_attribute, float_meant, floats_attribute, int_attribute,
    ints_attribute, str_attribute, strs_attribute,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::{AttributeProto, AttributeType};

impl Conversion {
    /// Sets both rules for an operator that is the same in ONNX and here: operands, results, and
    /// attributes of these names and types, which our operator must have under the same names. An
    /// attribute that is left out has the default of our operator, which must be the default of the
    /// ONNX operator.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn same(self, attributes: &'static [(&'static str, AttributeType)]) -> Conversion {
        self.attributes(attributes).import(import).export(export)
    }
}

/// Returns the element type for which float attributes are interpreted: that of the first operand,
/// or float64 if it is not known.
fn element_type(dtype: Option<DType>) -> DType {
    dtype.unwrap_or(DType::Float64)
}

/// Returns a call on the same operands, with the attributes that the node states under the same
/// names.
fn import(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let native = n.native().to_owned();
    let kinds: Vec<(&'static str, AttrKind)> = {
        let ops = &n.cx().ops;
        let defs = ops.find(&native).map(|op| ops.get(op).attrs.clone()).unwrap_or_default();
        defs.iter().map(|a| (a.name, a.kind)).collect()
    };
    let dtype = element_type(n.dtype(0).ok());
    let mut attrs = Vec::new();
    for &(name, _) in n.row().attributes {
        let Some(attribute) = n.attribute(name).cloned() else { continue };
        let kind = kinds.iter().find(|(known, _)| *known == name).map(|&(_, kind)| kind);
        let kind = kind.ok_or_else(|| because(format!("`{native}` has no attribute `{name}`")))?;
        let value = value(n.cx(), &attribute, kind, dtype);
        attrs.push((name, value.ok_or_else(|| because(format!("the value of the attribute `{name}` is not known")))?));
    }
    let operands = n.operands();
    n.call(operands, attrs)
}

/// Returns the value of a node's attribute as an attribute of our operator.
fn value(cx: &mut Context, a: &AttributeProto, kind: AttrKind, dtype: DType) -> Option<AttrId> {
    let utf8 = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    Some(match (a.r#type(), kind) {
        (AttributeType::Int, AttrKind::Bool) => match a.i() {
            bit @ (0 | 1) => cx.attr(Attr::Bool(bit == 1)),
            _ => return None,
        },
        (AttributeType::Int, _) => cx.attr(Attr::Int(a.i())),
        (AttributeType::Float, _) => cx.float_attr(float_meant(a.f(), dtype)),
        (AttributeType::String, _) => cx.str_attr(&utf8(a.s())?),
        (AttributeType::Ints, _) => {
            let items = a.ints.iter().map(|&i| cx.attr(Attr::Int(i))).collect();
            cx.attr(Attr::List(items))
        }
        (AttributeType::Floats, _) => {
            let items = a.floats.iter().map(|&f| cx.float_attr(float_meant(f, dtype))).collect();
            cx.attr(Attr::List(items))
        }
        (AttributeType::Strings, _) => {
            let strings: Option<Vec<String>> = a.strings.iter().map(|s| utf8(s)).collect();
            let items = strings?.iter().map(|s| cx.str_attr(s)).collect();
            cx.attr(Attr::List(items))
        }
        _ => return None,
    })
}

/// Writes a node on the same operands, with the attributes that differ from our operator's defaults
/// under the same names.
fn export(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let attrs = n.attrs();
    let dtype = element_type(n.dtype(0));
    let mut attributes = Vec::new();
    for &(name, ty) in n.row().attributes {
        if attrs.raw(name).is_some() {
            let written = attribute(&attrs, name, ty, dtype);
            attributes.push(written.ok_or_else(|| {
                ExportProblem::Unsupported(format!("the value of the attribute `{name}` of `{}`", n.native()))
            })?);
        }
    }
    // An attribute that the row does not name cannot be written.
    let cx = n.cx();
    let unnamed = cx.attrs.list(attrs.attrs).iter().map(|&(key, _)| cx.names.get(key));
    if let Some(name) = unnamed.into_iter().find(|key| !n.row().attributes.iter().any(|(known, _)| known == key)) {
        return Err(ExportProblem::Unsupported(format!("the attribute `{name}` of `{}`", n.native())));
    }
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}

/// Returns an attribute in the form of ONNX; `None` if reading it back would give another value.
fn attribute(attrs: &AttrReader<'_>, name: &str, ty: AttributeType, dtype: DType) -> Option<AttributeProto> {
    let is_kept = |&value: &f64| float_meant(value as f32, dtype).to_bits() == value.to_bits();
    let items = || match attrs.raw(name)? {
        Attr::List(items) => Some(items.iter().map(|&i| attrs.cx.attrs.get(i))),
        _ => None,
    };
    Some(match ty {
        AttributeType::Int => {
            let value = attrs.bool(name).map(i64::from).or_else(|| attrs.int(name))?;
            int_attribute(name, value)
        }
        AttributeType::Float => float_attribute(name, attrs.float(name).filter(is_kept)?),
        AttributeType::String => str_attribute(name, attrs.str(name)?),
        AttributeType::Ints => ints_attribute(name, &attrs.ints(name)?),
        AttributeType::Floats => {
            let float = |a: &Attr| match *a {
                Attr::Float(bits) => Some(f64::from_bits(bits)),
                Attr::Int(i) => Some(i as f64),
                _ => None,
            };
            let values: Vec<f64> = items()?.map(|a| float(a).filter(is_kept)).collect::<Option<_>>()?;
            floats_attribute(name, &values)
        }
        AttributeType::Strings => {
            let string = |a: &Attr| match *a {
                Attr::Str(s) => Some(attrs.cx.names.get(s)),
                _ => None,
            };
            let values: Vec<&str> = items()?.map(string).collect::<Option<_>>()?;
            strs_attribute(name, &values)
        }
        _ => return None,
    })
}
