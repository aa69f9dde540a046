//! Named patterns: those of the table, and those of users.

use std::borrow::Cow;

use anfora_ir::did_you_mean;
use anfora_manager::PassError;
use anfora_visit::pattern::{Pattern, any_of, capture, op, op_in};

/// A pattern with a name.
#[derive(Clone, Debug)]
pub struct CompositePattern {
    /// The name, which becomes the attribute `Composite`.
    pub name: Cow<'static, str>,
    /// The pattern.
    pub pattern: Pattern,
}

impl CompositePattern {
    /// Returns a pattern that is written like the left side of a rule.
    ///
    /// ```
    /// use anfora_passes::CompositePattern;
    /// let swish = CompositePattern::parse("swish", "multiply(%x, sigmoid(%x))")?;
    /// # Ok::<(), anfora_manager::PassError>(())
    /// ```
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If the text is not an expression.
    pub fn parse(name: impl Into<Cow<'static, str>>, text: &str) -> Result<CompositePattern, PassError> {
        let name = name.into();
        let pattern = Pattern::parse(text).map_err(|errors| {
            PassError::new(format!(
                "the pattern `{name}={text}` cannot be read: {}",
                errors.first().map_or("", |e| &e.message)
            ))
        })?;
        Ok(CompositePattern { name, pattern })
    }
}

const CONVOLUTIONS: [&str; 3] = ["nn.conv1d", "nn.conv2d", "nn.conv3d"];

/// The activations with a single operand that follow convolutions and products.
const ACTIVATIONS: [&str; 7] = ["nn.relu", "sigmoid", "tanh", "nn.gelu", "nn.silu", "nn.leaky_relu", "nn.hard_swish"];

/// The names of the standard patterns, in the order in which they are tried: patterns come before
/// their parts.
const STANDARD: [&str; 13] = [
    "attention",
    "conv_bias_activation",
    "conv_activation",
    "conv_bias",
    "conv",
    "matmul_bias_activation",
    "matmul_activation",
    "matmul_bias",
    "matmul",
    "quantized_matmul",
    "layer_norm",
    "gelu",
    "silu",
];

/// Returns the standard patterns, in the order in which they are tried.
///
/// Cost: linear in the size of the patterns.
pub fn standard_patterns() -> Vec<CompositePattern> {
    STANDARD.iter().filter_map(|name| standard_pattern(name)).collect()
}

/// Returns the standard pattern with this name.
fn standard_pattern(name: &str) -> Option<CompositePattern> {
    let name = *STANDARD.iter().find(|standard| **standard == name)?;
    let operands = |names: &[&str]| names.iter().map(|name| capture(name)).collect::<Vec<Pattern>>();
    let conv = || op_in(CONVOLUTIONS, operands(&["x", "w"]));
    let conv_bias = || any_of([op("add", [conv(), capture("b")]), op_in(CONVOLUTIONS, operands(&["x", "w", "b"]))]);
    let matmul = || op("matmul", operands(&["x", "w"]));
    let matmul_bias = || op("add", [matmul(), capture("b")]);
    let pattern = match name {
        "attention" => any_of([
            op("nn.attention", operands(&["q", "k", "v"])),
            op("nn.attention", operands(&["q", "k", "v", "mask"])),
        ]),
        "conv_bias_activation" => activated(conv_bias),
        "conv_activation" => activated(conv),
        "conv_bias" => conv_bias(),
        "conv" => conv(),
        "matmul_bias_activation" => activated(matmul_bias),
        "matmul_activation" => activated(matmul),
        "matmul_bias" => matmul_bias(),
        "matmul" => matmul(),
        "quantized_matmul" => op("quantized_matmul", operands(&["a", "sa", "za", "b", "sb", "zb", "sy", "zy"])),
        "layer_norm" => {
            any_of([op("nn.layer_norm", operands(&["x", "g", "b"])), op("nn.layer_norm", operands(&["x", "g"]))])
        }
        "gelu" => op("nn.gelu", operands(&["x"])),
        _ => op("nn.silu", operands(&["x"])),
    };
    Some(CompositePattern { name: name.into(), pattern })
}

/// Returns an activation of a pattern.
fn activated(inner: impl Fn() -> Pattern) -> Pattern {
    any_of([op_in(ACTIVATIONS, [inner()]), op("clip", [inner(), capture("least"), capture("most")])])
}

/// Reads a list of patterns, separated by commas: names of standard ones, or `name=expression`.
///
/// # Errors
/// If a name is unknown, or an expression cannot be read.
pub(super) fn parse(list: &str) -> Result<Vec<CompositePattern>, PassError> {
    let mut patterns = Vec::new();
    for item in items_of(list) {
        if let Some((name, text)) = item.split_once('=').filter(|(name, _)| is_name(name.trim())) {
            patterns.push(CompositePattern::parse(name.trim().to_string(), text.trim())?);
        } else if item == "standard" {
            patterns.extend(standard_patterns());
        } else if let Some(pattern) = standard_pattern(item) {
            patterns.push(pattern);
        } else {
            let names = STANDARD.iter().copied().chain(["standard"]);
            let help = did_you_mean(item, names).map(|name| format!("did you mean `{name}`?"));
            let help = help.unwrap_or_else(|| "a pattern of your own is written `name=expression`".to_string());
            return Err(PassError::new(format!("there is no standard pattern `{item}`")).with_help(help));
        }
    }
    Ok(patterns)
}

/// Returns the items of a list: what is between commas outside of all brackets and strings.
fn items_of(list: &str) -> Vec<&str> {
    let (mut depth, mut in_string, mut is_escaped) = (0usize, false, false);
    let is_separator = |c: char| {
        if in_string {
            in_string = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            return false;
        }
        match c {
            '"' => in_string = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(is_separator).map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
}
