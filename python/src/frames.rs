//! References that callbacks in Python may use while the call from Rust lasts.
//!
//! An instrument receives a `&Module`, but a handle in Python cannot hold a reference. So the
//! handle holds a number. While the call lasts, a thread-local list contains the reference under
//! this number. When the call has ended, the list no longer contains it, and using the handle is an
//! error. Mutators, rules and passes over dataflow regions lend a [`Maker`] in the same way.

use std::sync::atomic::{AtomicU64, Ordering};

use anfora::ir::{AttrsId, Body, Context, Editor, ExprId, Literal, Module, OpId, TypeError, TypeId};
use anfora::visit::Site;
use anfora::visit::pattern::Rewriter;
use pyo3::prelude::*;
use scoped_tls_hkt::{ReborrowMut, scoped_thread_local};

use crate::errors::StaleError;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A lent module, and the frame of the enclosing call that lends a module.
#[derive(Copy, Clone)]
pub(crate) struct Frame<'a> {
    number: u64,
    module: &'a Module,
    outer: Option<&'a Frame<'a>>,
}

scoped_thread_local!(static LENT: for<'a> &'a Frame<'a>);

/// Lends a module to a callback while it runs. The callback receives the number of the module, and
/// passes it to [`read_lent`].
pub(crate) fn lend<T>(module: &Module, callback: impl FnOnce(u64) -> T) -> T {
    let number = new_number();
    if LENT.is_set() {
        LENT.with(|outer| LENT.set(&Frame { number, module, outer: Some(outer) }, || callback(number)))
    } else {
        LENT.set(&Frame { number, module, outer: None }, || callback(number))
    }
}

/// Reads the module that was lent under a number. Returns `None` if the call has ended or runs on
/// another thread.
pub(crate) fn read_lent<T>(number: u64, read: impl FnOnce(&Module) -> T) -> Option<T> {
    if !LENT.is_set() {
        return None;
    }
    LENT.with(|innermost| {
        let mut frame = Some(innermost);
        while let Some(f) = frame {
            if f.number == number {
                return Some(read(f.module));
            }
            frame = f.outer;
        }
        None
    })
}

/// An object that makes expressions: the site of a mutator, the rewriter of a rule, the editor of a
/// dataflow region, or a function builder.
pub(crate) trait Maker {
    /// Returns the tables and the body.
    fn program(&mut self) -> (&Context, &Body);
    /// Returns the tables, in which values are interned.
    fn tables(&mut self) -> &mut Context;
    /// Makes a call of an operator.
    fn call_op(&mut self, op: OpId, operands: &[ExprId], attrs: AttrsId) -> Result<ExprId, TypeError>;
    /// Makes a call of a function value.
    fn call(&mut self, function: ExprId, arguments: &[ExprId]) -> Result<ExprId, TypeError>;
    /// Makes a tuple.
    fn tuple(&mut self, fields: &[ExprId]) -> ExprId;
    /// Makes a projection.
    fn proj(&mut self, tuple: ExprId, index: u32) -> Result<ExprId, TypeError>;
    /// Makes a `match_cast`.
    fn match_cast(&mut self, value: ExprId, to: TypeId) -> Result<ExprId, TypeError>;
    /// Makes a constant.
    fn literal(&mut self, literal: Literal) -> ExprId;
    /// Makes a reference to a global function.
    fn global(&mut self, name: &str) -> ExprId;
    /// Makes `none`.
    fn none(&mut self) -> ExprId;
    /// Binds a value to a variable if the maker has a place for the binding, and returns the
    /// variable. Otherwise returns the value.
    fn bind(&mut self, name: Option<&str>, value: ExprId) -> ExprId;
    /// Returns the expression that has replaced an expression of the program at the current place,
    /// or the expression itself if nothing has.
    fn resolve(&self, id: ExprId) -> ExprId;
    /// Returns an editor of the whole body, if walks may edit the body during the callback.
    fn editor(&mut self) -> Option<Editor<'_>> {
        None
    }
}

/// The methods of [`Maker`] that an editor has.
macro_rules! by_editor {
    ($this:ident => $editor:expr) => {
        fn tables(&mut self) -> &mut Context {
            let $this = self;
            $editor.cx
        }
        fn call_op(&mut self, op: OpId, operands: &[ExprId], attrs: AttrsId) -> Result<ExprId, TypeError> {
            let $this = self;
            $editor.call_op(op, operands, attrs)
        }
        fn call(&mut self, function: ExprId, arguments: &[ExprId]) -> Result<ExprId, TypeError> {
            let $this = self;
            let attrs = $editor.cx.attrs.empty();
            $editor.call(function, arguments, attrs)
        }
        fn tuple(&mut self, fields: &[ExprId]) -> ExprId {
            let $this = self;
            $editor.tuple(fields)
        }
        fn proj(&mut self, tuple: ExprId, index: u32) -> Result<ExprId, TypeError> {
            let $this = self;
            $editor.proj(tuple, index)
        }
        fn match_cast(&mut self, value: ExprId, to: TypeId) -> Result<ExprId, TypeError> {
            let $this = self;
            $editor.match_cast(value, to)
        }
        fn literal(&mut self, literal: Literal) -> ExprId {
            let $this = self;
            $editor.literal(literal)
        }
        fn global(&mut self, name: &str) -> ExprId {
            let $this = self;
            let global = $editor.cx.global(name);
            $editor.global(global)
        }
        fn none(&mut self) -> ExprId {
            let $this = self;
            $editor.none()
        }
    };
}
pub(crate) use by_editor;

impl Maker for Site<'_> {
    by_editor!(site => site.editor);

    fn program(&mut self) -> (&Context, &Body) {
        (self.editor.cx, self.editor.body)
    }

    fn bind(&mut self, name: Option<&str>, value: ExprId) -> ExprId {
        let name = name.map(|n| self.editor.cx.names.intern(n));
        Site::bind(self, name, value)
    }

    fn resolve(&self, id: ExprId) -> ExprId {
        Site::resolve(self, id)
    }
}

/// The editor of a dataflow region that a pass works on. It makes expressions, but binds none of
/// them: only the walks that edit the region add bindings.
pub(crate) struct LentEditor<'a> {
    pub(crate) editor: Editor<'a>,
}

impl Maker for LentEditor<'_> {
    by_editor!(lent => lent.editor);

    fn program(&mut self) -> (&Context, &Body) {
        (self.editor.cx, self.editor.body)
    }

    fn bind(&mut self, name: Option<&str>, value: ExprId) -> ExprId {
        let _ = name;
        value
    }

    fn resolve(&self, id: ExprId) -> ExprId {
        id
    }

    fn editor(&mut self) -> Option<Editor<'_>> {
        Some(Editor::new(self.editor.cx, self.editor.body))
    }
}

impl Maker for Rewriter<'_, '_> {
    fn program(&mut self) -> (&Context, &Body) {
        Rewriter::program(self)
    }

    fn tables(&mut self) -> &mut Context {
        self.cx()
    }

    fn call_op(&mut self, op: OpId, operands: &[ExprId], attrs: AttrsId) -> Result<ExprId, TypeError> {
        Rewriter::call_op(self, op, operands, attrs)
    }

    fn call(&mut self, function: ExprId, arguments: &[ExprId]) -> Result<ExprId, TypeError> {
        Rewriter::call(self, function, arguments)
    }

    fn tuple(&mut self, fields: &[ExprId]) -> ExprId {
        Rewriter::tuple(self, fields)
    }

    fn proj(&mut self, tuple: ExprId, index: u32) -> Result<ExprId, TypeError> {
        Rewriter::proj(self, tuple, index)
    }

    fn match_cast(&mut self, value: ExprId, to: TypeId) -> Result<ExprId, TypeError> {
        self.op_with("match_cast", &[value], &[("to", to.into())])
    }

    fn literal(&mut self, literal: Literal) -> ExprId {
        Rewriter::literal(self, literal)
    }

    fn global(&mut self, name: &str) -> ExprId {
        Rewriter::global(self, name)
    }

    fn none(&mut self) -> ExprId {
        Rewriter::none(self)
    }

    /// Returns the value: a rule makes nested expressions, and the rewriter binds those that need a
    /// binding.
    fn bind(&mut self, name: Option<&str>, value: ExprId) -> ExprId {
        let _ = name;
        value
    }

    fn resolve(&self, id: ExprId) -> ExprId {
        id
    }
}

/// A lent maker with its number.
struct LentMaker<'a> {
    number: u64,
    maker: &'a mut (dyn Maker + 'a),
}

impl<'a> ReborrowMut<'a> for LentMaker<'_> {
    type Result = LentMaker<'a>;

    fn reborrow_mut(&'a mut self) -> LentMaker<'a> {
        LentMaker { number: self.number, maker: self.maker }
    }
}

scoped_thread_local!(static mut MAKER: for<'a> LentMaker<'a>);
scoped_thread_local!(static SEEN: for<'a> (u64, &'a Context, &'a Body));

/// Lends a maker to a callback while it runs. The callback uses it by [`with_maker`] with the same
/// number. During the callback, the makers of enclosing callbacks cannot be used.
pub(crate) fn lend_maker<T>(number: u64, maker: &mut dyn Maker, callback: impl FnOnce() -> T) -> T {
    MAKER.set(LentMaker { number, maker }, callback)
}

/// Lends tables and a body to a callback while it runs, for reading by [`read_program`].
pub(crate) fn lend_program<T>(number: u64, cx: &Context, body: &Body, callback: impl FnOnce() -> T) -> T {
    SEEN.set((number, cx, body), callback)
}

fn over() -> PyErr {
    StaleError::new_err("what a callback is given can be used only while the callback runs")
}

/// Uses the maker that was lent under a number.
///
/// # Errors
/// If the callback has ended, or runs on another thread.
pub(crate) fn with_maker<T>(number: u64, work: impl FnOnce(&mut dyn Maker) -> T) -> PyResult<T> {
    if !MAKER.is_set() {
        return Err(over());
    }
    MAKER.with(|lent| if lent.number == number { Ok(work(lent.maker)) } else { Err(over()) })
}

/// Reads the tables and the body that were lent under a number, by [`lend_program`] or
/// [`lend_maker`].
///
/// # Errors
/// If the callback has ended, or runs on another thread.
pub(crate) fn read_program<T>(number: u64, read: impl FnOnce(&Context, &Body) -> T) -> PyResult<T> {
    if SEEN.is_set() && SEEN.with(|(lent, _, _)| lent == number) {
        return Ok(SEEN.with(|(_, cx, body)| read(cx, body)));
    }
    with_maker(number, |maker| {
        let (cx, body) = maker.program();
        read(cx, body)
    })
}

/// Returns a new number for a loan.
pub(crate) fn new_number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}
