//! Limits to what folding computes and adds to a module: the settings that FoldConstant and
//! FoldBatchNorm read.

use anfora_manager::{ConfigDef, ConfigError, PassContext};

/// By how much folding one call may make the module grow.
pub const MAX_GROWTH_BYTES: ConfigDef = ConfigDef::bytes(
    "FoldConstant.max_growth_bytes",
    Some(16 << 10),
    "how many bytes folding one call may add to the module",
);

/// By how much folding may make the module grow in all.
pub const MAX_TOTAL_GROWTH_BYTES: ConfigDef = ConfigDef::bytes(
    "FoldConstant.max_total_growth_bytes",
    Some(16 << 20),
    "how many bytes all folds in a function together may add to the module",
);

/// A limit to what kernels compute while folding. No value lifts this limit.
pub const MAX_WORK: ConfigDef = ConfigDef::int(
    "FoldConstant.max_work",
    0,
    1 << 40,
    1 << 28,
    "how many steps the kernels of all folds in a function together may take; a limit to the bytes that is lifted does not lift this one",
);

/// Limits to what folding computes, and to the bytes of literals that it adds to a function.
/// `None` lifts a limit to bytes; `work` always holds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FoldBudget {
    /// By folding one call.
    pub per_call: Option<usize>,
    /// By all folds in a function together.
    pub total: Option<usize>,
    /// Steps of the kernels of all folds in a function together.
    pub work: u64,
}

impl FoldBudget {
    /// Returns the limits that the settings of a context say.
    ///
    /// # Errors
    /// If the context's registry declares one of the settings as a setting of another kind.
    pub fn of(cx: &PassContext) -> Result<FoldBudget, ConfigError> {
        let bytes = |limit: Option<u64>| limit.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        Ok(FoldBudget {
            per_call: bytes(cx.config_of(&MAX_GROWTH_BYTES)?),
            total: bytes(cx.config_of(&MAX_TOTAL_GROWTH_BYTES)?),
            work: u64::try_from(cx.config_of::<i64>(&MAX_WORK)?).unwrap_or(0),
        })
    }
}

impl Default for FoldBudget {
    fn default() -> FoldBudget {
        FoldBudget { per_call: Some(16 << 10), total: Some(16 << 20), work: 1 << 28 }
    }
}
