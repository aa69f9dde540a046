//! The meanings of names at the current place: locals and symbolic dimensions, scoped by an undo
//! log.

use super::{Parser, SourceRange};
use crate::core::entity::{DimId, EntityId, ExprId, NameId, SideTable, SymbolId};
use crate::core::expr::{Expr, VarFlags};
use crate::report::diagnostic::Diagnostic;
use crate::report::suggest::did_you_mean;
use crate::tables::dtype::DType;

/// A property of a local that restricts its use.
#[derive(Copy, Clone, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum LocalKind {
    /// A variable, or a graph node that may be shared.
    Plain = 0,
    /// The variable of a `fn` in its own block, if the result type of the `fn` is not stated.
    Untyped = 1,
    /// A graph node that contains a binding, and so may be used only once.
    Once = 2,
}

#[derive(Copy, Clone)]
struct Local {
    expr: Option<ExprId>,
    /// The serial number of the function in which it is visible, and the kind.
    tag: u32,
}

/// The entry of a name that was never declared.
const UNDECLARED: Local = Local { expr: None, tag: u32::MAX };

#[derive(Copy, Clone)]
struct Symbol {
    symbol: Option<SymbolId>,
    owner: u32,
}

/// A symbol that the current signature or `match_cast` binds.
#[derive(Copy, Clone)]
pub(super) struct NewSymbol {
    pub(super) name: NameId,
    pub(super) symbol: SymbolId,
    pub(super) place: SourceRange,
    /// True if the symbol occurred alone as a dimension, which binds it.
    pub(super) alone: bool,
}

/// The treatment of a name in a dimension that nothing binds.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum UnknownSymbols {
    /// The name is an error.
    Error,
    /// The type is read again later, when the name may be bound.
    Later,
    /// As `Later`, and such a name was found.
    Found,
}

/// A position in the undo log, to return to.
#[derive(Copy, Clone)]
pub(super) struct Mark {
    locals: u32,
    symbols: u32,
}

pub(super) struct Scopes {
    locals: SideTable<NameId, Local>,
    /// The declared names, in order.
    local_log: Vec<NameId>,
    /// The previous meanings of names that had one when they were declared again, with the
    /// positions of the declarations in the log.
    shadowed: Vec<(u32, Local)>,
    symbols: SideTable<NameId, Symbol>,
    symbol_log: Vec<(NameId, Symbol)>,
    /// The serial number of the current function. Functions do not see each other's names.
    pub(super) owner: u32,
    serials: u32,
    /// The symbols that the `fn`s being read own so far.
    pub(super) lambda_symbols: Vec<SymbolId>,
}

impl Scopes {
    pub(super) fn new() -> Scopes {
        Scopes {
            locals: SideTable::new(0, UNDECLARED),
            local_log: Vec::new(),
            shadowed: Vec::new(),
            symbols: SideTable::new(0, Symbol { symbol: None, owner: u32::MAX }),
            symbol_log: Vec::new(),
            owner: 0,
            serials: 0,
            lambda_symbols: Vec::new(),
        }
    }

    /// Reserves space for `names` names.
    pub(super) fn reserve(&mut self, names: usize) {
        self.locals.reserve(names);
        self.local_log.reserve(names);
    }

    /// Begins a function, which sees no names from outside. Returns the number of the previous
    /// function, to be restored later.
    pub(super) fn begin_function(&mut self) -> u32 {
        self.serials += 1;
        std::mem::replace(&mut self.owner, self.serials)
    }

    #[inline]
    pub(super) fn mark(&self) -> Mark {
        Mark { locals: self.local_log.len() as u32, symbols: self.symbol_log.len() as u32 }
    }

    /// Removes the declarations since `mark`.
    #[inline]
    pub(super) fn undo(&mut self, mark: Mark) {
        self.undo_locals(mark);
        while self.symbol_log.len() > mark.symbols as usize {
            let (name, old) = self.symbol_log.pop().expect("its length was looked at");
            self.symbols.set(name, old);
        }
    }

    /// Like [`Scopes::undo`], for the end of a function that is in no other. The declarations stay
    /// in the table, but no other function sees them.
    pub(super) fn forget(&mut self, mark: Mark) {
        self.local_log.truncate(mark.locals as usize);
        while self.shadowed.pop_if(|&mut (at, _)| at >= mark.locals).is_some() {}
        self.symbol_log.truncate(mark.symbols as usize);
    }

    pub(super) fn undo_locals(&mut self, mark: Mark) {
        while self.local_log.len() > mark.locals as usize {
            let name = self.local_log.pop().expect("its length was looked at");
            let at = self.local_log.len() as u32;
            let old = self.shadowed.pop_if(|&mut (place, _)| place == at);
            self.locals.set(name, old.map_or(UNDECLARED, |(_, local)| local));
        }
    }

    #[inline]
    pub(super) fn declare(&mut self, name: NameId, expr: ExprId, kind: LocalKind) {
        let slot = self.locals.get_mut(name);
        if slot.expr.is_some() {
            self.shadowed.push((self.local_log.len() as u32, *slot));
        }
        self.local_log.push(name);
        *slot = Local { expr: Some(expr), tag: self.owner << 2 | kind as u32 };
    }

    /// Returns the expression of a plain local.
    #[inline(always)]
    fn plain(&self, name: NameId) -> Option<ExprId> {
        let local = self.locals[name];
        if local.tag == self.owner << 2 { local.expr } else { None }
    }

    fn find(&self, name: NameId) -> Option<(ExprId, LocalKind)> {
        let local = self.locals[name];
        let kind = match local.tag & 3 {
            0 => LocalKind::Plain,
            1 => LocalKind::Untyped,
            _ => LocalKind::Once,
        };
        if local.tag >> 2 == self.owner { Some((local.expr?, kind)) } else { None }
    }

    pub(super) fn declare_symbol(&mut self, name: NameId, symbol: SymbolId) {
        self.symbol_log.push((name, self.symbols[name]));
        self.symbols.set(name, Symbol { symbol: Some(symbol), owner: self.owner });
    }

    pub(super) fn symbol(&self, name: NameId) -> Option<SymbolId> {
        let entry = self.symbols[name];
        if entry.owner == self.owner { entry.symbol } else { None }
    }

    /// Returns visible names, the nearest first. If there are very many, some are left out.
    fn visible(&self) -> Vec<NameId> {
        const MOST: usize = 2000;
        let newest = self.local_log.iter().rev().take(MOST);
        let oldest = self.local_log.iter().take(self.local_log.len().saturating_sub(MOST).min(MOST));
        newest.chain(oldest).copied().filter(|&n| self.find(n).is_some()).collect()
    }
}

impl Parser<'_, '_> {
    /// Returns the expression that a local stands for here.
    #[inline]
    pub(super) fn local(&mut self, name: NameId, place: impl Into<SourceRange>) -> ExprId {
        match self.scopes.plain(name) {
            Some(expr) => expr,
            None => self.special_local(name, place.into()),
        }
    }

    #[cold]
    fn special_local(&mut self, name: NameId, place: SourceRange) -> ExprId {
        let Some((expr, kind)) = self.scopes.find(name) else { return self.unknown_local(name, place) };
        match kind {
            LocalKind::Plain => expr,
            LocalKind::Untyped => {
                let text = self.cx.names.get(name).to_string();
                self.error_help(
                    place,
                    format!("`%{text}` calls itself, but its result type is not stated"),
                    "state it: `fn(…) -> TYPE { … }`",
                );
                // Report one error for each `fn`: after it, the variable has the error type.
                self.scopes.declare(name, expr, LocalKind::Plain);
                expr
            }
            LocalKind::Once => {
                if self.bindings_seen[expr] {
                    let text = self.cx.names.get(name).to_string();
                    self.error_help(
                        place,
                        format!("`%{text}` names a node with a block, which can be used only once"),
                        format!("bind it with `let %{text} = …`"),
                    );
                    return self.error_expr();
                }
                self.bindings_seen.set(expr, true);
                expr
            }
        }
    }

    /// Returns the parameter for a local that nothing binds, if such locals are parameters.
    fn free_local(&mut self, name: NameId, place: SourceRange) -> Option<ExprId> {
        /// The number of the function that a fragment is the block of.
        const FRAGMENT: u32 = 1;
        if self.scopes.owner != FRAGMENT {
            return None;
        }
        if let Some(&known) = self.free_locals.as_ref()?.get(&name) {
            return Some(known);
        }
        let ty = self.cx.types.scalar(DType::Float32);
        let var = self.new_var(name, VarFlags::PLAIN, ty, place.start);
        self.body.push_param(var);
        self.free_locals.as_mut()?.insert(name, var.expr());
        Some(var.expr())
    }

    fn unknown_local(&mut self, name: NameId, place: SourceRange) -> ExprId {
        if let Some(free) = self.free_local(name, place) {
            return free;
        }
        let text = self.cx.names.get(name).to_string();
        let hidden = (0..self.body.len()).rev().map(EntityId::from_index).find_map(|id| match self.body.expr(id) {
            Expr::Var { name: Some(n), flags } if n == name => Some((id, flags.is_dataflow())),
            _ => None,
        });
        let mut error = Diagnostic::error(format!("unknown local `%{text}`")).at(place.range());
        if let Some((id, dataflow)) = hidden {
            let start = self.body.span(id).unwrap_or(0) as usize;
            let end = crate::text::extent::token_extent(self.text, start).end;
            if dataflow {
                error = error
                    .with_related(start..end, "visible only in its dataflow region")
                    .with_help(format!("name it in the region's `output(%{text})`"));
            } else {
                error = error.with_related(start..end, "bound in a block that does not enclose this place");
            }
        } else {
            let visible = self.scopes.visible();
            let names = visible.iter().map(|&n| self.cx.names.get(n));
            if let Some(near) = did_you_mean(&text, names) {
                error = error.with_help(format!("did you mean `%{near}`?"));
            }
        }
        self.error(error);
        self.error_expr()
    }

    // ---- Symbolic dimensions ----

    /// Returns the dimension that a name stands for here.
    pub(super) fn symbolic_dim(&mut self, name: NameId, place: SourceRange) -> DimId {
        if let Some(symbol) = self.scopes.symbol(name) {
            return self.cx.types.dims.symbol(symbol);
        }
        if let Some(symbol) = self.symbol_of_function_type(name) {
            return self.cx.types.dims.symbol(symbol);
        }
        if self.new_symbols.is_some() {
            let symbol = self.cx.types.dims.new_symbol(name);
            self.scopes.declare_symbol(name, symbol);
            if let Some(new) = &mut self.new_symbols {
                new.push(NewSymbol { name, symbol, place, alone: false });
            }
            return self.cx.types.dims.symbol(symbol);
        }
        if self.unknown_symbols != UnknownSymbols::Error {
            self.unknown_symbols = UnknownSymbols::Found;
            return self.cx.types.dims.unknown();
        }
        let text = self.cx.names.get(name).to_string();
        let mut error = Diagnostic::error(format!("unknown symbolic dimension `{text}`")).at(place.range());
        let visible: Vec<NameId> = self.scopes.symbol_log.iter().rev().map(|&(n, _)| n).take(2000).collect();
        let names = visible.iter().filter(|&&n| self.scopes.symbol(n).is_some()).map(|&n| self.cx.names.get(n));
        error = match did_you_mean(&text, names) {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None => error.with_help(
                "a parameter's type or a `match_cast` binds a dimension that stands alone in it; `?` is any",
            ),
        };
        self.error(error);
        self.cx.types.dims.unknown()
    }

    /// Records that a symbol is alone as a dimension of a tensor type outside function types, which
    /// binds it.
    pub(super) fn bind_symbol(&mut self, symbol: SymbolId) {
        if let Some(new) = &mut self.new_symbols
            && let Ok(i) = new.binary_search_by_key(&symbol.index(), |n| n.symbol.index())
        {
            new[i].alone = true;
        }
    }

    /// Reads types in which unknown names are new symbols. Each new symbol must occur alone as a
    /// dimension, which binds it.
    pub(super) fn binding_types<T>(&mut self, mut read: impl FnMut(&mut Self) -> super::Parsed<T>) -> super::Parsed<T> {
        let start = self.tok.start();
        let errors = self.diagnostics.len();
        self.new_symbols = Some(Vec::new());
        self.names_in_function_types.clear();
        let mut result = read(self);
        let new = self.new_symbols.take().unwrap_or_default();
        // If a function type came before the parameter that binds a name, the function type has
        // bound the name itself. Then read the types again.
        let mistaken = self.names_in_function_types.iter().any(|&n| self.scopes.symbol(n).is_some());
        if mistaken && result.is_ok() && self.diagnostics.len() == errors {
            self.seek(start);
            result = read(self);
        }
        for n in new {
            if !n.alone {
                let text = self.cx.names.get(n.name).to_string();
                self.error_help(
                    n.place,
                    format!("nothing binds the symbolic dimension `{text}`"),
                    "it has to stand alone as a dimension somewhere, such as `Tensor[(n,), float32]`",
                );
            }
            self.scopes.lambda_symbols.push(n.symbol);
        }
        result
    }
}
