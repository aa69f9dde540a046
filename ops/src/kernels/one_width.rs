//! The replacement for `pulp` in builds without compiled kernels. The compiler chooses the vector
//! size.

pub(super) struct Arch;

pub(super) trait Simd {}

pub(super) trait WithSimd {
    type Output;

    fn with_simd<S: Simd>(self, simd: S) -> Self::Output;
}

impl Simd for Arch {}

impl Arch {
    pub(super) fn new() -> Arch {
        Arch
    }

    pub(super) fn dispatch<W: WithSimd>(&self, work: W) -> W::Output {
        work.with_simd(Arch)
    }
}
