//! Limits of the computations, the growth and the reads by folding: the settings of FoldConstant
//! and FoldBatchNorm.

use anfora_ir::Literal;
use anfora_manager::{ConfigDef, ConfigError, PassContext};

/// The limit of the growth of the module by folding one call.
pub const MAX_GROWTH_BYTES: ConfigDef = ConfigDef::limit(
    "FoldConstant.max_growth_bytes",
    Some(16 << 10),
    "the greatest number of bytes that the fold of one call may add to the module, less those that it frees",
);

/// The limit of the growth of the module by all folds in a function.
pub const MAX_TOTAL_GROWTH_BYTES: ConfigDef = ConfigDef::limit(
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

/// The size of a file from which large constants are not read.
pub const MAX_FILE_BYTES: ConfigDef = ConfigDef::limit(
    "FoldConstant.max_file_bytes",
    Some(256 << 20),
    "constants of more than 1 MiB in a file of more bytes than this stay there: nothing is folded that reads them",
);

/// The size of a constant that may stay in a large file.
const LARGE: usize = 1 << 20;

/// Limits of the computations while folding, of the bytes of literals that folding adds to a
/// function, and of the files that it reads. `None` lifts a limit of bytes; `work` always holds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FoldBudget {
    /// The bytes added by folding one call.
    pub per_call: Option<usize>,
    /// The bytes added by all folds in a function.
    pub total: Option<usize>,
    /// The steps of the kernels of all folds in a function.
    pub work: u64,
    /// The size of a file up to which all its constants are read. In a larger file, constants of
    /// more than 1 MiB stay.
    pub file: Option<u64>,
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
            file: cx.config_of(&MAX_FILE_BYTES)?,
        })
    }

    /// Returns the size of a constant that stays in its file. `None` if it may be read.
    pub(crate) fn stays_in_file(&self, constant: &Literal) -> Option<usize> {
        let range = constant.file_range().filter(|range| range.len() > LARGE)?;
        self.file.is_some_and(|most| range.file().len() > most).then(|| range.len())
    }
}

impl Default for FoldBudget {
    fn default() -> FoldBudget {
        FoldBudget { per_call: Some(16 << 10), total: Some(16 << 20), work: 1 << 28, file: Some(256 << 20) }
    }
}
