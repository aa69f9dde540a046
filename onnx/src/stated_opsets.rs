//! The versions of operators that a module states.

use anfora_ir::{AttrId, AttrsId, Context, Module};

use crate::attributes::{int, list, str};
use crate::domains::is_standard;
use crate::error::ExportProblem;
use crate::keys;
use crate::proto::OperatorSetIdProto;

/// Returns the versions of operators that a module with these attributes states; `None` if it
/// states none.
///
/// # Errors
/// If the attribute is not what the importer writes.
pub(crate) fn opsets_of(cx: &Context, attrs: AttrsId) -> Result<Option<Vec<OperatorSetIdProto>>, ExportProblem> {
    let opset = |&item: &AttrId| match list(cx, item)? {
        &[domain, version] => {
            Some(OperatorSetIdProto { domain: Some(str(cx, domain)?.to_owned()), version: Some(int(cx, version)?) })
        }
        _ => None,
    };
    let Some(value) = cx.find_attr(attrs, keys::OPSETS) else { return Ok(None) };
    let opsets = list(cx, value).and_then(|items| items.iter().map(opset).collect());
    opsets.map(Some).ok_or(ExportProblem::Damaged(keys::OPSETS))
}

/// Returns the domains that a module states with their versions; `None` if it states none.
///
/// # Errors
/// If the attribute is not what the importer writes.
pub(crate) fn opset_imports(module: &Module) -> Result<Option<Vec<(String, i64)>>, ExportProblem> {
    let opsets = opsets_of(&module.cx, module.attrs())?;
    let pair = |o: &OperatorSetIdProto| (o.domain().to_owned(), o.version());
    Ok(opsets.map(|opsets| opsets.iter().map(pair).collect()))
}

/// Returns the version of the standard operators that a module states.
pub(crate) fn stated_version(module: &Module) -> Option<i64> {
    let opsets = opsets_of(&module.cx, module.attrs()).ok()??;
    opsets.iter().find(|opset| is_standard(opset.domain())).map(OperatorSetIdProto::version)
}
