//! Random well-typed programs of the whole language, or of a part of it: a [`Vocabulary`].
//!
//! In the whole language, half of the functions are in graph form: some values are not bound but
//! shared as nodes, and blocks and Ifs are used as operands. The programs succeed in the
//! interpreter if it takes enough steps, since expressions that fail are in places that are not
//! evaluated.

mod blocks;
mod functions;
mod globals;
mod kinds;
mod regions;
mod rng;
mod statements;
mod vocabulary;

pub use vocabulary::Vocabulary;

use std::fmt;
use std::sync::Arc;

use anfora_ir::{Attr, BuildError, FunctionBuilder, Module, OpRegistry, Visibility};

use globals::Globals;
use kinds::{Kind, Mark, Types, Values};
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
    vocabulary: Vocabulary,
    /// A mark of the parameters.
    parameters: Mark,
    /// True if the function is in graph form.
    graph: bool,
    names: u32,
    symbols: u32,
    /// Variables that `@main` returns in any case.
    sinks: Vec<anfora_ir::ExprId>,
}

/// A random program: a vocabulary, about as many statements as the size says, and a seed.
#[derive(Copy, Clone)]
pub struct Random {
    /// The content.
    pub vocabulary: Vocabulary,
    /// The number of statements, about.
    pub size: usize,
    /// The seed. Programs of one seed and two sizes have nothing in common.
    pub seed: u64,
}

impl Random {
    /// Returns the program, over the standard operators.
    ///
    /// # Panics
    /// If the program is not well-typed, which is a defect.
    pub fn module(&self) -> Module {
        self.build(anfora_ops::standard()).expect("random programs are well-typed")
    }

    /// Builds the program over `operators`.
    ///
    /// # Errors
    /// If they lack an operator that the program needs.
    pub fn build(&self, operators: Arc<OpRegistry>) -> Result<Module, BuildError> {
        let &Random { vocabulary, size, seed } = self;
        let mut module = Module::new(operators);
        match vocabulary {
            Vocabulary::Whole => whole(&mut module, size, seed)?,
            _ => generate(&mut module, "main", Role::Main, vocabulary, size, seed, &Globals::default())?,
        }
        Ok(module)
    }
}

#[cfg(feature = "proptest")]
impl Random {
    /// Returns a strategy. Shrinking makes a program smaller and keeps its seed.
    pub fn strategy(
        vocabulary: Vocabulary,
        sizes: std::ops::Range<usize>,
    ) -> impl proptest::prelude::Strategy<Value = Random> {
        use proptest::prelude::{Strategy, any};
        (sizes, any::<u64>().no_shrink()).prop_map(move |(size, seed)| Random { vocabulary, size, seed })
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Random { vocabulary, size, seed } = self;
        write!(f, "the random program of {vocabulary:?}, size {size} and seed {seed}:\n{}", self.module())
    }
}

pub(super) fn random(size: usize, seed: u64) -> Result<Module, BuildError> {
    Random { vocabulary: Vocabulary::Whole, size, seed }.build(anfora_ops::standard())
}

/// Adds the functions of a program of the whole language.
fn whole(module: &mut Module, size: usize, seed: u64) -> Result<(), BuildError> {
    const WHOLE: Vocabulary = Vocabulary::Whole;
    let mut rng = Rng::new(seed);
    let mut globals = Globals::default();
    globals::pairwise(module)?;
    for i in 0..rng.below(4).min(size / 8) {
        let name = format!("helper{i}");
        generate(module, &name, Role::Helper, WHOLE, size / 8, rng.next(), &globals)?;
        globals.helpers.push(name);
    }
    if size > 8 && rng.one_in(2) {
        generate(module, "maker", Role::Maker, WHOLE, size / 8, rng.next(), &globals)?;
        globals.makers.push("maker".to_string());
    }
    if size > 8 && rng.one_in(2) {
        generate(module, "sized", Role::Sized, WHOLE, size / 8, rng.next(), &globals)?;
        globals.sized.push("sized".to_string());
    }
    if size > 2 {
        globals::add_fixed(module, &mut rng, &mut globals)?;
    }
    generate(module, "main", Role::Main, WHOLE, size, rng.next(), &globals)?;
    if rng.one_in(4) {
        let version = module.cx.int_attr(1);
        let attrs = module.cx.named_attrs(&[("version", version)]);
        module.set_attrs(attrs);
    }
    Ok(())
}

fn generate(
    module: &mut Module,
    name: &str,
    role: Role,
    vocabulary: Vocabulary,
    size: usize,
    seed: u64,
    globals: &Globals,
) -> Result<(), BuildError> {
    let mut b = FunctionBuilder::new(module, name);
    let mut rng = Rng::new(seed);
    let mut types = Types::new(b.cx(), vocabulary);
    if role != Role::Main {
        b.visibility(Visibility::Private);
    }
    let mut values = Values::new();
    let params: &[Kind] = match role {
        Role::Main => vocabulary.parameters(),
        Role::Helper | Role::Maker => &[Kind::Vector],
        Role::Sized => &[Kind::Dynamic, Kind::Vector],
    };
    if params.contains(&Kind::Dynamic) {
        let n = b.symbol("n");
        types.bind_length(b.cx(), n, vocabulary);
    }
    for (i, &kind) in params.iter().enumerate() {
        let id = b.param(&format!("p{i}"), types.of(kind));
        values.push(kind, id);
    }
    let parameters = values.mark();
    if vocabulary == Vocabulary::Whole && role == Role::Main && rng.one_in(4) {
        // A function that nothing calls, and that must be kept all the same.
        if let Some(name) = &globals.named_in_attributes {
            let g = b.cx().global(name);
            let g = b.cx().attr(Attr::Global(g));
            b.attr("companion", g);
        }
        let cost = b.cx().int_attr(size as i64);
        b.attr("cost", cost);
    }
    let graph = vocabulary.has_graphs() && rng.one_in(2);
    let blocks = vec![blocks::Block::of_function(size)];
    let region = regions::Region::default();
    let (names, symbols, sinks) = (0, 0, Vec::new());
    let mut g = Generator {
        b,
        rng,
        types,
        values,
        blocks,
        region,
        globals,
        role,
        vocabulary,
        parameters,
        graph,
        names,
        symbols,
        sinks,
    };
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
