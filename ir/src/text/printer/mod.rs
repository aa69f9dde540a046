//! Prints modules in the text format.
//!
//! Printing is linear in the size of the program, whatever its shape. It uses an explicit stack of
//! [`Task`]s, the parts that remain to be printed. Text is handed on in chunks. Text on one line
//! without nesting never uses that stack.

mod aliases;
mod attributes;
mod expressions;
mod line;
mod literals;
mod names;
mod numbers;
mod output;
mod shared;
mod symbols;
mod types;
mod words;

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, ExprId, FunctionKey, NameId, SymbolId, TypeId};
use crate::core::expr::{Expr, OperandList, VarId};
use crate::core::function::Function;
use crate::core::module::Module;
use crate::tables::dim::Dim;
use crate::tables::types::Type;
use crate::text::threads;

pub use line::{FunctionLine, binding_label, line_name, signature_line, spelled_label, spelled_local, statement_line};

use aliases::Aliases;
use expressions::{BodyState, Statements};
use line::LineVariables;
use literals::LiteralTexts;
use names::NameUses;
use output::Output;
use shared::Slot;
use symbols::SymbolNames;
use types::TypePart;

/// Options for printing a module.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct PrintOptions {
    /// The types that are written out.
    pub annotations: Annotations,
    /// The constants that are written out.
    pub literals: PrintLiterals,
}

/// The types that are written out, besides those of parameters and of the results of global
/// functions.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Annotations {
    /// Types that inference could not find again, and the result types that a `fn` states.
    #[default]
    Needed,
    /// The type of every Let, and the result type of every `fn`.
    All,
}

/// The constants that are written out.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum PrintLiterals {
    /// All constants, with every bit.
    #[default]
    Full,
    /// Constants with more elements are replaced by the number of their elements, for reading. Such
    /// a text does not parse back.
    Elided {
        /// Constants of up to this many elements, and those whose elements are all equal, are
        /// written out.
        more_than: usize,
    },
}

/// Prints a module. Parsing the text gives a module that is alpha-equal to it and prints the same
/// text.
///
/// # Errors
/// If `sink` returns an error.
///
/// ```
/// use std::sync::Arc;
/// use anfora_ir::{DType, FunctionBuilder, Module, OpRegistry, PrintOptions, print_module};
///
/// let mut module = Module::new(Arc::new(OpRegistry::new()));
/// let f32x8 = module.cx.types.static_tensor(DType::Float32, &[8]);
/// let mut f = FunctionBuilder::new(&mut module, "main");
/// let x = f.param("x", f32x8);
/// let pair = f.tuple(&[x, x]);
/// let pair = f.bind("pair", pair);
/// f.finish(pair).unwrap();
/// let mut text = String::new();
/// print_module(&module, &PrintOptions::default(), &mut text).unwrap();
/// assert_eq!(
///     text,
///     "\
/// def @main(%x: Tensor[(8,), float32]) -> (Tensor[(8,), float32], Tensor[(8,), float32]) {
///   let %pair = (%x, %x);
///   %pair
/// }
/// "
/// );
/// ```
pub fn print_module(module: &Module, options: &PrintOptions, sink: &mut impl fmt::Write) -> fmt::Result {
    let functions: Vec<&Function> = module.functions().map(|(_, f)| f).collect();
    print_functions(&module.cx, options, module.attrs(), &functions, sink, |_| ())
}

/// The approximate length of the text of a node.
const BYTES_OF_A_NODE: usize = 16;

/// The text of a module, as [`print_module`] writes it, with the position of each function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleText {
    text: String,
    /// The functions in program order, each with its start.
    functions: Vec<(FunctionKey, usize)>,
}

impl ModuleText {
    /// Returns the text of a module with these options.
    pub fn new(module: &Module, options: &PrintOptions) -> ModuleText {
        let functions: Vec<&Function> = module.functions().map(|(_, f)| f).collect();
        let nodes: usize = functions.iter().map(|f| f.body.len()).sum();
        // This is about the length of a binding. If the estimate suffices, the allocation does not
        // depend on whether the text is slightly longer than a power of two.
        let mut text = String::with_capacity(nodes.saturating_mul(BYTES_OF_A_NODE));
        let mut starts = Vec::with_capacity(functions.len());
        print_functions(&module.cx, options, module.attrs(), &functions, &mut text, |at| starts.push(at))
            .expect("a string takes all text");
        ModuleText { text, functions: module.order().iter().copied().zip(starts).collect() }
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text before the functions: the attributes of the module, and aliases.
    pub fn head(&self) -> &str {
        let end = self.functions.first().map_or(self.text.len(), |&(_, start)| start);
        self.text[..end].trim_end_matches('\n')
    }

    /// Returns the functions in program order, each with its text, without the empty line before
    /// the next function.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = (FunctionKey, &str)> {
        self.functions.iter().enumerate().map(|(i, &(key, start))| {
            let end = self.functions.get(i + 1).map_or(self.text.len(), |&(_, next)| next - 1);
            (key, &self.text[start..end])
        })
    }
}

/// Prints one function, after the aliases that it uses. Prints nothing if the function was removed
/// from the module.
///
/// # Errors
/// If `sink` returns an error.
pub fn print_function(
    module: &Module,
    function: FunctionKey,
    options: &PrintOptions,
    sink: &mut impl fmt::Write,
) -> fmt::Result {
    let functions: Vec<&Function> = module.get(function).into_iter().collect();
    print_functions(&module.cx, options, module.cx.attrs.empty(), &functions, sink, |_| ())
}

/// Prints a module to a file or another writer.
///
/// # Errors
/// The errors of `sink`.
pub fn write_module(module: &Module, options: &PrintOptions, sink: &mut impl io::Write) -> io::Result<()> {
    struct Adapter<'a, W> {
        sink: &'a mut W,
        error: Option<io::Error>,
    }
    impl<W: io::Write> fmt::Write for Adapter<'_, W> {
        fn write_str(&mut self, s: &str) -> fmt::Result {
            self.sink.write_all(s.as_bytes()).map_err(|e| {
                self.error = Some(e);
                fmt::Error
            })
        }
    }
    let mut adapter = Adapter { sink, error: None };
    match print_module(module, options, &mut adapter) {
        Ok(()) => Ok(()),
        Err(_) => Err(adapter.error.unwrap_or_else(|| io::Error::other("the module could not be written"))),
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_module(self, &PrintOptions::default(), f)
    }
}

impl Module {
    /// Returns the module as text, with the default options.
    pub fn to_text(&self) -> String {
        ModuleText::new(self, &PrintOptions::default()).text
    }
}

/// Prints attributes and functions of a module. Calls `begins_at` with the start of each function.
fn print_functions(
    cx: &Context,
    options: &PrintOptions,
    attrs: AttrsId,
    functions: &[&Function],
    sink: &mut dyn fmt::Write,
    mut begins_at: impl FnMut(usize),
) -> fmt::Result {
    let nothing = Body::new(&cx.types);
    let aliases = Arc::new(Aliases::plan(cx, options, attrs, functions.iter().copied()));
    let mut printer = Printer::new(cx, options, aliases, &nothing, NameTables::new(cx), sink);
    let mut is_first = printer.module_head(attrs);
    for &f in functions {
        begins_at(printer.out.position() + usize::from(!is_first));
        printer.next_function(f, is_first);
        is_first = false;
    }
    printer.out.finish()
}

/// The number of nodes of the functions that a thread prints at once.
const NODES_OF_PART: usize = 1 << 14;

/// The number of parts for each thread whose texts wait to be written.
const PARTS: usize = 64;

/// If the constants of a module take more bytes, it is printed on one thread.
const MOST_CONSTANTS: usize = 64 << 20;

/// Prints a module as [`write_module`] does, on up to `threads` threads; 0 for as many as the
/// machine runs at once. The text is the same. This pays for a module of many functions. A small
/// module, one of which a single function is the larger part, and one with more than 64 MiB of
/// constants are printed on one thread. The texts of at most 64 parts for each thread are in
/// memory at once, each of 16,384 nodes or of one larger function.
///
/// ```
/// use anfora_ir::{PrintOptions, Source, parse_module, write_module_on};
///
/// let text = "def @f() -> () {\n  ()\n}\n\ndef @g() -> () {\n  ()\n}\n";
/// let module = parse_module(Source::new("a", text), anfora_ops::standard())?;
/// let mut printed = Vec::new();
/// write_module_on(2, &module, &PrintOptions::default(), &mut printed)?;
/// assert_eq!(printed, text.as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The errors of `sink`.
pub fn write_module_on(
    threads: usize,
    module: &Module,
    options: &PrintOptions,
    sink: &mut impl io::Write,
) -> io::Result<()> {
    let threads = threads::count(threads);
    let cx = &module.cx;
    let functions: Vec<&Function> = module.functions().map(|(_, f)| f).collect();
    let nodes: usize = functions.iter().map(|f| f.body.len()).sum();
    let largest = functions.iter().map(|f| f.body.len()).max().unwrap_or(0);
    let constants = cx.literals.stored_bytes();
    // The text of a part is in memory until it is written.
    if threads < 2 || nodes < 2 * NODES_OF_PART || largest > nodes / 2 || constants > MOST_CONSTANTS {
        return write_module(module, options, sink);
    }
    let nothing = Body::new(&cx.types);
    let aliases = Arc::new(Aliases::plan(cx, options, module.attrs(), functions.iter().copied()));
    let mut head = String::new();
    let mut printer = Printer::new(cx, options, Arc::clone(&aliases), &nothing, NameTables::new(cx), &mut head);
    let mut is_first = printer.module_head(module.attrs());
    printer.out.finish().expect("a string takes all text");
    sink.write_all(head.as_bytes())?;
    // Each part is the functions up to the first with which it has enough nodes.
    let mut room = NODES_OF_PART;
    let is_last_of_part = |f: &&Function| {
        let is_last = f.body.len() >= room;
        room = if is_last { NODES_OF_PART } else { room - f.body.len() };
        is_last
    };
    let parts: Vec<&[&Function]> = functions.split_inclusive(is_last_of_part).collect();
    for parts in parts.chunks(threads * PARTS) {
        // A thread uses the same tables for all its parts.
        let print_part = |tables: &mut Option<NameTables>, at: usize| {
            let mut text = String::with_capacity(NODES_OF_PART * BYTES_OF_A_NODE);
            let own = tables.take().unwrap_or_else(|| NameTables::new(cx));
            let mut printer = Printer::new(cx, options, Arc::clone(&aliases), &nothing, own, &mut text);
            for (i, f) in parts[at].iter().enumerate() {
                printer.next_function(f, is_first && at == 0 && i == 0);
            }
            printer.out.finish().expect("a string takes all text");
            *tables = Some(NameTables { names: printer.names, literals: printer.literals });
            text
        };
        for text in threads::map(threads, parts.len(), || None, print_part) {
            sink.write_all(text.as_bytes())?;
        }
        is_first = false;
    }
    Ok(())
}

/// Returns the annotation of a Let if it is to be written.
fn annotation(cx: &Context, options: &PrintOptions, body: &Body, var: VarId, value: ExprId) -> Option<TypeId> {
    let ty = body.ty(var.expr());
    let is_written = match (options.annotations, body.expr(value)) {
        (Annotations::All, _) => true,
        (Annotations::Needed, Expr::CallOp { op, .. }) => cx.ops.is_opaque(op) && ty != cx.types.any(),
        (Annotations::Needed, _) => false,
    };
    (is_written && ty != cx.types.error()).then_some(ty)
}

/// Returns the result type to print for a function of the module: the stated type, or the type of
/// its block, unless only the block can name a dimension in it.
fn result_annotation(cx: &Context, f: &Function) -> Option<TypeId> {
    let ty = f.ret.unwrap_or_else(|| f.body.type_of(f.body.root()));
    if matches!(cx.types.get(ty), Type::Error) {
        return None;
    }
    let params = f.body.params().iter().map(|p| f.body.ty(p.expr()));
    (f.ret.is_some() || is_nameable(cx, ty, params, |_| true)).then_some(ty)
}

/// Returns true if the parameter types name every symbol of the type `ty` for which `own` is true.
fn is_nameable(cx: &Context, ty: TypeId, params: impl Iterator<Item = TypeId>, own: impl Fn(SymbolId) -> bool) -> bool {
    if !cx.types.is_symbolic(ty) {
        return true;
    }
    let mut bound = rustc_hash::FxHashSet::default();
    for p in params {
        cx.types.for_each_symbol(p, |d| {
            bound.insert(d);
        });
    }
    let mut nameable = true;
    cx.types.for_each_symbol(ty, |d| {
        nameable &= bound.contains(&d) || !matches!(*cx.types.dims.get(d), Dim::Symbol(s) if own(s));
    });
    nameable
}

/// A part of the text that remains to be printed.
enum Task<'m> {
    Text(&'static str),
    /// ` -> T`
    Result(Option<TypeId>),
    /// The block of a function of the module, after a space.
    Body(ExprId),
    Block(ExprId, Slot),
    Statements(Statements),
    CloseBlock,
    GraphBinding {
        n: u32,
        is_noted: bool,
        in_region: bool,
    },
    NumberedTail(u32),
    LetValue {
        value: ExprId,
        is_recursive: bool,
    },
    Expr(ExprId),
    Operands {
        list: OperandList,
        next: u32,
        attrs: Option<AttrsId>,
    },
    Field(u32),
    Attr(AttrId),
    AttrItems(&'m [AttrId]),
    NamedAttrs {
        items: &'m [(NameId, AttrId)],
        comma: bool,
        close: &'static str,
    },
    LeaveFunction,
}

/// The tables of a printer that are as long as those of the context.
struct NameTables {
    names: NameUses,
    literals: LiteralTexts,
}

impl NameTables {
    fn new(cx: &Context) -> NameTables {
        NameTables { names: NameUses::new(&cx.names), literals: LiteralTexts::new(&cx.literals) }
    }
}

struct Printer<'m, 'w> {
    cx: &'m Context,
    options: &'m PrintOptions,
    out: Output<'w>,
    aliases: Arc<Aliases>,
    names: NameUses,
    symbols: SymbolNames,
    literals: LiteralTexts,
    /// For each operator, true if its name needs no quotes, where this is known.
    plain_ops: Vec<Option<bool>>,
    state: BodyState<'m>,
    /// The enclosing functions of a function that is an attribute.
    outer: Vec<BodyState<'m>>,
    tasks: Vec<Task<'m>>,
    type_parts: Vec<TypePart>,
    /// The outputs of the dataflow regions that are open.
    outputs: Vec<ExprId>,
    /// Present if a single line is printed, in which each block is written as `{ … }`.
    line: Option<LineVariables>,
}

impl<'m, 'w> Printer<'m, 'w> {
    /// Returns a printer of functions with these aliases. `nothing` is an empty body.
    fn new(
        cx: &'m Context,
        options: &'m PrintOptions,
        aliases: Arc<Aliases>,
        nothing: &'m Body,
        tables: NameTables,
        sink: &'w mut dyn fmt::Write,
    ) -> Printer<'m, 'w> {
        let NameTables { names, literals } = tables;
        Printer {
            cx,
            options,
            out: Output::new(sink).with_room(),
            aliases,
            names,
            symbols: SymbolNames::default(),
            literals,
            plain_ops: Vec::new(),
            state: BodyState::nothing(nothing),
            outer: Vec::new(),
            tasks: Vec::new(),
            type_parts: Vec::new(),
            outputs: Vec::new(),
            line: None,
        }
    }

    /// Prints the attributes and aliases of a module. Returns true if there are none.
    fn module_head(&mut self, attrs: AttrsId) -> bool {
        let mut is_first = true;
        if !self.cx.attrs.list(attrs).is_empty() {
            self.out.text("#![");
            self.named_attrs(self.cx.attrs.list(attrs), false, "]\n");
            self.run();
            is_first = false;
        }
        if !self.aliases.types.is_empty() || !self.aliases.attrs.is_empty() {
            if !is_first {
                self.out.ascii(b'\n');
            }
            self.alias_definitions();
            is_first = false;
        }
        is_first
    }

    /// Prints a function, after an empty line unless it is the first.
    fn next_function(&mut self, f: &'m Function, is_first: bool) {
        if !is_first {
            self.out.ascii(b'\n');
        }
        self.function(f);
    }
}

impl Printer<'_, '_> {
    /// Runs the remaining tasks.
    fn run(&mut self) {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Text(t) => self.out.text(t),
                Task::Result(ty) => {
                    if let Some(ty) = ty.filter(|&t| !self.aliases.is_too_large(t)) {
                        self.out.text(" -> ");
                        self.ty(ty);
                    }
                }
                Task::Body(root) => {
                    self.out.ascii(b' ');
                    self.function_block(root);
                }
                Task::Block(start, slot) => self.block(start, slot),
                Task::Statements(s) => self.statements(s),
                Task::CloseBlock => self.close_block(),
                Task::GraphBinding { n, is_noted, in_region } => self.graph_binding(n, is_noted, in_region),
                Task::NumberedTail(n) => self.numbered_tail(n),
                Task::LetValue { value, is_recursive } => self.let_value(value, is_recursive),
                Task::Expr(id) => self.expr(id),
                Task::Operands { list, next, attrs } => self.operands(list, next, attrs),
                Task::Field(index) => self.field(index),
                Task::Attr(a) => self.attr(a),
                Task::AttrItems(items) => self.attr_items(items),
                Task::NamedAttrs { items, comma, close } => self.named_attrs(items, comma, close),
                Task::LeaveFunction => self.leave_function(),
            }
            if !self.out.pass_on() {
                self.tasks.clear();
            }
        }
    }
}
