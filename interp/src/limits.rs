//! The resources that a run may use, and those that it used.

/// The resources that a program may use.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The number of evaluated expressions, not counting atoms.
    pub steps: u64,
    /// The steps of all kernels together: elements that they read, write or compute with, as
    /// [`KernelCall::steps`](anfora_ir::KernelCall::steps) counts them. A kernel that would exceed
    /// the limit does not start.
    pub work: u64,
    /// The bytes of values, variables and pending work, not counting garbage. The count is an
    /// estimate, and the same on every machine.
    pub bytes: usize,
}

impl Default for Limits {
    /// Returns limits of 2^40 steps, 2^38 steps of kernels, and 8 GiB.
    fn default() -> Limits {
        Limits { steps: 1 << 40, work: 1 << 38, bytes: 8 << 30 }
    }
}

/// The resources that a run used, out of those that [`Limits`] bounds.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// The number of expressions that were evaluated, not counting atoms.
    pub steps: u64,
    /// The steps of the kernels, as [`KernelCall::steps`](anfora_ir::KernelCall::steps) counts
    /// them.
    pub work: u64,
}
