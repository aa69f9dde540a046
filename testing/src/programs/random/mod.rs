//! Random well-typed programs of the whole language.
//!
//! Half of the functions are in graph form: some values are not bound but shared as nodes, and
//! blocks and Ifs are used as operands. The programs succeed in the interpreter if it takes enough
//! steps, since expressions that fail are in places that are not evaluated.

mod blocks;
mod functions;
mod globals;
mod kinds;
mod regions;
mod rng;
mod statements;

use anfora_ir::{Attr, BuildError, FunctionBuilder, Module, Visibility};

use globals::Globals;
use kinds::{Kind, Types, Values};
use rng::Rng;

/// The role of a function.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Role {
    /// The public function, from one tensor of each kind to a tuple of results.
    Main,
    /// A function from a vector to a vector.
    Helper,
    /// A function from a vector to a function.
    Maker,
    /// A function from a vector of any length and a vector of eight to a vector of eight.
    Sized,
}

/// The state of the generation of one function.
struct Generator<'m> {
    b: FunctionBuilder<'m>,
    rng: Rng,
    types: Types,
    values: Values,
    blocks: Vec<blocks::Block>,
    region: regions::Region,
    globals: &'m Globals,
    role: Role,
    /// True if the function is in graph form.
    graph: bool,
    names: u32,
    symbols: u32,
    /// Variables that `@main` returns in any case.
    sinks: Vec<anfora_ir::ExprId>,
}

pub(super) fn random(size: usize, seed: u64) -> Result<Module, BuildError> {
    let mut module = Module::new(anfora_ops::standard());
    let mut rng = Rng::new(seed);
    let mut globals = Globals::default();
    globals::pairwise(&mut module)?;
    for i in 0..rng.below(4).min(size / 8) {
        let name = format!("helper{i}");
        generate(&mut module, &name, Role::Helper, size / 8, rng.next(), &globals)?;
        globals.helpers.push(name);
    }
    if size > 8 && rng.one_in(2) {
        generate(&mut module, "maker", Role::Maker, size / 8, rng.next(), &globals)?;
        globals.makers.push("maker".to_string());
    }
    if size > 8 && rng.one_in(2) {
        generate(&mut module, "sized", Role::Sized, size / 8, rng.next(), &globals)?;
        globals.sized.push("sized".to_string());
    }
    if size > 2 {
        globals::add_fixed(&mut module, &mut rng, &mut globals)?;
    }
    generate(&mut module, "main", Role::Main, size, rng.next(), &globals)?;
    if rng.one_in(4) {
        let version = module.cx.int_attr(1);
        let attrs = module.cx.named_attrs(&[("version", version)]);
        module.set_attrs(attrs);
    }
    Ok(module)
}

fn generate(
    module: &mut Module,
    name: &str,
    role: Role,
    size: usize,
    seed: u64,
    globals: &Globals,
) -> Result<(), BuildError> {
    let mut b = FunctionBuilder::new(module, name);
    let mut rng = Rng::new(seed);
    let mut types = Types::new(b.cx());
    if role != Role::Main {
        b.visibility(Visibility::Private);
    }
    let mut values = Values::new();
    let params: &[Kind] = match role {
        Role::Main => &Kind::TENSORS,
        Role::Helper | Role::Maker => &[Kind::Vector],
        Role::Sized => &[Kind::Dynamic, Kind::Vector],
    };
    if role == Role::Sized {
        let n = b.symbol("n");
        types.bind_length(b.cx(), n);
    }
    for (i, &kind) in params.iter().enumerate() {
        let id = b.param(&format!("p{i}"), types.of(kind));
        values.push(kind, id);
    }
    if role == Role::Main && rng.one_in(4) {
        // A function that nothing calls, and that must be kept all the same.
        if let Some(name) = &globals.named_in_attributes {
            let g = b.cx().global(name);
            let g = b.cx().attr(Attr::Global(g));
            b.attr("companion", g);
        }
        let cost = b.cx().int_attr(size as i64);
        b.attr("cost", cost);
    }
    let graph = rng.one_in(2);
    let blocks = vec![blocks::Block::of_function(size)];
    let region = regions::Region::default();
    let (names, symbols, sinks) = (0, 0, Vec::new());
    let mut g = Generator { b, rng, types, values, blocks, region, globals, role, graph, names, symbols, sinks };
    let tail = loop {
        if g.one_statement_is_left() {
            g.statement()?;
        } else if let Some(tail) = g.leave()? {
            break tail;
        }
    };
    g.b.finish(tail)?;
    Ok(())
}
