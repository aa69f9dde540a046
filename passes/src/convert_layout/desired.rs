//! Desired layouts: the option of the pass, and the operators that it names.

use std::fmt;

use anfora_ir::{AttrDefault, Context, OpId, did_you_mean};
use anfora_manager::PassError;
use rustc_hash::FxHashMap;

/// The attributes by which operators state the layouts of data and kernel.
const DATA_ATTRIBUTES: [&str; 2] = ["data_layout", "layout"];
const KERNEL_ATTRIBUTE: &str = "kernel_layout";

/// The layouts that a call should have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LayoutsOf {
    /// The layouts with these letters. `None` for a kernel that keeps its layout.
    Letters {
        /// The layout of the first operand and of the result.
        data: String,
        /// The layout of the kernel.
        kernel: Option<String>,
    },
    /// The layouts that the operator has by default.
    Plain,
}

/// A desired layout, as it is written in the option `desired`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesiredLayout {
    /// The operator; `None` for all convolutions that have these letters.
    pub operator: Option<String>,
    /// The layout of the first operand and of the result.
    pub data: String,
    /// The layout of the kernel; `None` if kernels keep their layout.
    pub kernel: Option<String>,
}

impl DesiredLayout {
    /// Reads `OPERATOR:DATA:KERNEL`, where the operator and the kernel may be left out. `None` if
    /// the text has another form.
    fn parse(text: &str) -> Option<DesiredLayout> {
        let is_layout = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase());
        let mut parts: Vec<&str> = text.split(':').collect();
        let operator = (!is_layout(parts.first()?)).then(|| parts.remove(0).to_owned());
        match parts.as_slice() {
            [data] if is_layout(data) => Some(DesiredLayout { operator, data: (*data).to_owned(), kernel: None }),
            [data, kernel] if is_layout(data) && is_layout(kernel) => {
                Some(DesiredLayout { operator, data: (*data).to_owned(), kernel: Some((*kernel).to_owned()) })
            }
            _ => None,
        }
    }
}

impl fmt::Display for DesiredLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operator) = &self.operator {
            write!(f, "{operator}:")?;
        }
        f.write_str(&self.data)?;
        self.kernel.as_ref().map_or(Ok(()), |kernel| write!(f, ":{kernel}"))
    }
}

/// The error for a text that is no desired layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreadableLayout(String);

impl fmt::Display for UnreadableLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no desired layout, which is written as in `NHWC` or `nn.conv2d:NHWC:OHWI`", self.0)
    }
}

impl std::error::Error for UnreadableLayout {}

/// The layouts that the calls of a program should have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DesiredLayouts {
    /// The layouts of a list; later ones win.
    Listed(Vec<DesiredLayout>),
    /// The layout that each operator has by default, also for normalisations by channel: that of
    /// ONNX.
    Plain,
}

impl DesiredLayouts {
    /// Reads the texts of the option `desired`. Without texts, the channels of all convolutions
    /// come last.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If a text is not `OPERATOR:DATA:KERNEL`, with or without operator and kernel.
    pub fn parse(texts: &[String]) -> Result<DesiredLayouts, UnreadableLayout> {
        const CHANNELS_LAST: [&str; 3] = ["NWC", "NHWC", "NDHWC"];
        let layout = |text: &str| DesiredLayout::parse(text).ok_or_else(|| UnreadableLayout(text.to_owned()));
        let list: Result<_, _> = match texts {
            [] => CHANNELS_LAST.iter().map(|text| layout(text)).collect(),
            texts => texts.iter().map(|text| layout(text)).collect(),
        };
        Ok(DesiredLayouts::Listed(list?))
    }

    /// Returns the desired layouts of the operators of a registry.
    pub(super) fn resolve(&self, cx: &mut Context) -> Result<FxHashMap<OpId, LayoutsOf>, PassError> {
        let DesiredLayouts::Listed(list) = self else {
            // A rule that states no layout has no answer to this wish.
            let with_rule = cx.ops.registry().rows().filter(|(_, row)| row.relayout.is_some());
            return Ok(with_rule.map(|(op, _)| (op, LayoutsOf::Plain)).collect());
        };
        let mut layouts = FxHashMap::default();
        for wish in list {
            let of = || LayoutsOf::Letters { data: wish.data.clone(), kernel: wish.kernel.clone() };
            match &wish.operator {
                Some(name) => {
                    let op = cx.ops.resolve(name)?;
                    check(cx, op, wish)?;
                    layouts.insert(op, of());
                }
                None => {
                    let fits = |op: OpId| is_convolution(cx, op) && check(cx, op, wish).is_ok();
                    let ops: Vec<OpId> = cx.ops.registry().rows().map(|(op, _)| op).filter(|&op| fits(op)).collect();
                    if ops.is_empty() {
                        return Err(PassError::new(format!("no convolution has the layouts `{wish}`")));
                    }
                    layouts.extend(ops.into_iter().map(|op| (op, of())));
                }
            }
        }
        Ok(layouts)
    }
}

/// Returns the default of an attribute that is a layout.
fn plain_layout(cx: &Context, op: OpId, names: &[&str]) -> Option<&'static str> {
    cx.ops.get(op).attrs.iter().filter(|attr| names.contains(&attr.name)).find_map(|attr| match attr.default {
        AttrDefault::Str(plain) => Some(plain),
        _ => None,
    })
}

fn is_convolution(cx: &Context, op: OpId) -> bool {
    plain_layout(cx, op, &[KERNEL_ATTRIBUTE]).is_some()
}

/// Checks that an operator has the letters of a desired layout.
fn check(cx: &Context, op: OpId, wish: &DesiredLayout) -> Result<(), PassError> {
    let row = cx.ops.get(op);
    let has_letters =
        |layout: &str, plain: &str| layout.len() == plain.len() && plain.chars().all(|letter| layout.contains(letter));
    let plain = plain_layout(cx, op, &DATA_ATTRIBUTES).filter(|_| row.relayout.is_some());
    let Some(plain) = plain else {
        let all = cx.ops.registry().rows().filter(|&(op, _)| plain_layout(cx, op, &DATA_ATTRIBUTES).is_some());
        let names: Vec<String> = all.map(|(_, row)| row.name.to_string()).collect();
        let near = did_you_mean(&row.name, names.iter().map(String::as_str));
        let error = PassError::new(format!("`{}` states no layout", row.name));
        return Err(error.with_optional_help(near.map(|near| format!("did you mean `{near}`?"))));
    };
    let kernel = plain_layout(cx, op, &[KERNEL_ATTRIBUTE]);
    let wrong = |what: &str, found: &str, plain: &str| {
        PassError::new(format!(
            "`{}` has no {what} layout `{found}`: the letters of `{plain}` in some order are expected",
            row.name
        ))
    };
    if !has_letters(&wish.data, plain) {
        return Err(wrong("data", &wish.data, plain));
    }
    match (&wish.kernel, kernel) {
        (Some(found), Some(plain)) if !has_letters(found, plain) => Err(wrong("kernel", found, plain)),
        (Some(_), None) => Err(PassError::new(format!("`{}` has no kernel, and so no layout of one", row.name))),
        _ => Ok(()),
    }
}
