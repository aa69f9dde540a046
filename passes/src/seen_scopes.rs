//! The scopes of a forward walk, and the question which of the variables that it has passed are
//! visible at its place.

use anfora_ir::{BlockKind, Body, VarId};
use anfora_visit::Scope;
use smallvec::{SmallVec, smallvec};

/// A scope that was entered.
struct SeenScope {
    /// The scope around it.
    around: u32,
    /// The lambda of its block, numbered in program order; 0 for the function's own block.
    lambda: u32,
    is_region: bool,
    is_open: bool,
}

/// All scopes that a forward walk has entered. Passes that replace values by earlier ones note the
/// number of the scope of each value, and do not remove values when the scope is left: in most
/// programs, the last scope contains nearly all values.
pub(crate) struct SeenScopes {
    /// All scopes in the order of entry; the function's own block is the first.
    scopes: SmallVec<[SeenScope; 4]>,
    /// The innermost open scope, and its lambda.
    here: u32,
    lambda: u32,
    lambdas: u32,
}

impl SeenScopes {
    /// Returns the scopes at the beginning of a walk.
    pub(crate) fn new() -> SeenScopes {
        let own = SeenScope { around: 0, lambda: 0, is_region: false, is_open: true };
        SeenScopes { scopes: smallvec![own], here: 0, lambda: 0, lambdas: 0 }
    }

    /// Returns the number of the innermost open scope.
    #[inline]
    pub(crate) fn here(&self) -> u32 {
        self.here
    }

    /// Returns the number of the innermost lambda; 0 outside lambdas.
    #[inline]
    pub(crate) fn lambda(&self) -> u32 {
        self.lambda
    }

    /// Returns true if a scope belongs to the innermost lambda. A value of another lambda would
    /// have to be captured.
    #[inline]
    pub(crate) fn is_of_this_lambda(&self, scope: u32) -> bool {
        self.scopes[scope as usize].lambda == self.lambda
    }

    /// Returns true if a variable that is bound in a scope is visible: the scope is open, or the
    /// variable is an output of a region in an open scope.
    #[inline]
    pub(crate) fn is_visible(&self, body: &Body, scope: u32, var: VarId) -> bool {
        let scope = &self.scopes[scope as usize];
        scope.is_open || (scope.is_region && self.scopes[scope.around as usize].is_open && !body.is_dataflow_var(var))
    }

    /// Enters a scope.
    pub(crate) fn enter(&mut self, scope: Scope) {
        if let Scope::Block(BlockKind::Lambda(_)) = scope {
            self.lambdas += 1;
            self.lambda = self.lambdas;
        }
        let (around, lambda, is_region) = (self.here, self.lambda, scope == Scope::Region);
        self.here = self.scopes.len() as u32;
        self.scopes.push(SeenScope { around, lambda, is_region, is_open: true });
    }

    /// Leaves the innermost open scope.
    pub(crate) fn exit(&mut self) {
        let scope = &mut self.scopes[self.here as usize];
        scope.is_open = false;
        self.here = scope.around;
        self.lambda = self.scopes[self.here as usize].lambda;
    }
}
