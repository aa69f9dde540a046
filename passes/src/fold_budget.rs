//! Limits of the computations and growth by folding: the settings of FoldConstant and
//! FoldBatchNorm.

use anfora_manager::{ConfigDef, ConfigError, PassContext};

/// The limit of the growth of the module by folding one call.
pub const MAX_GROWTH_BYTES: ConfigDef = ConfigDef::bytes(
    "FoldConstant.max_growth_bytes",
    Some(16 << 10),
    "the greatest number of bytes that the fold of one call may add to the module, less those that it frees",
);

/// The limit of the growth of the module by all folds in a function.
pub const MAX_TOTAL_GROWTH_BYTES: ConfigDef = ConfigDef::bytes(
    "FoldConstant.max_total_growth_bytes",
    Some(16 << 20),
    "the greatest number of bytes that all folds in a function together may add to the module",
);

/// The limit of the steps of kernels while folding. No value lifts this limit.
pub const MAX_WORK: ConfigDef = ConfigDef::int(
    "FoldConstant.max_work",
    0,
    1 << 40,
    1 << 28,
    "the greatest number of steps of the kernels of all folds in a function together; it also holds if the bytes are unlimited",
);

/// Limits of the computations while folding, and of the bytes of literals that folding adds to a
/// function. `None` lifts a limit of bytes; `work` always holds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FoldBudget {
    /// The bytes added by folding one call.
    pub per_call: Option<usize>,
    /// The bytes added by all folds in a function.
    pub total: Option<usize>,
    /// The steps of the kernels of all folds in a function.
    pub work: u64,
}

impl FoldBudget {
    /// Returns the limits in the settings of a context.
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
