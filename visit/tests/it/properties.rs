//! Tests on random programs: a tool that does nothing writes nothing, a copy differs only in its
//! variables, and rewrites leave well-formed programs.

use std::convert::Infallible;
use std::ops::ControlFlow;

use anfora_ir::{
    Body, Counts, Expr, ExprId, IdSet, Literal, Module, Source, VarId, alpha_equal, parse_module, signature_type,
    verify_module,
};
use anfora_testing::programs::{Random, Vocabulary};
use anfora_visit::{
    Binding, Edits, Link, Mutator, RewriteError, Site, Slot, Verdict, Visit, Visitor, copy_fresh, free_variables,
    mutate, substitute, walk,
};
use proptest::prelude::*;

use crate::programs::{body, edit, first, random};

/// Checks that every variable is in scope at its uses, that every Let has one link, and that
/// regions start at the right place.
struct Whole {
    defined: IdSet<ExprId>,
    undefined: usize,
    lets: IdSet<ExprId>,
    twice: usize,
}

impl Visitor for Whole {
    type Break = Infallible;
    fn visit_def(&mut self, _: &Body, var: VarId) -> Visit<Infallible> {
        self.defined.insert(var.expr());
        Visit::Continue
    }
    fn visit_use(&mut self, _: &Body, var: VarId) -> Visit<Infallible> {
        self.undefined += usize::from(!self.defined.contains(var.expr()));
        Visit::Continue
    }
    fn visit_binding(&mut self, _: &Body, binding: Binding) -> Visit<Infallible> {
        self.twice += usize::from(!self.lets.insert(binding.id));
        Visit::Continue
    }
}

fn check_whole(module: &Module) {
    let mut whole = Whole { defined: IdSet::with_capacity(0), undefined: 0, lets: IdSet::with_capacity(0), twice: 0 };
    let _: ControlFlow<Infallible> = walk(body(module), &mut whole);
    assert_eq!((whole.undefined, whole.twice), (0, 0), "{module}");
    assert!(verify_module(module).is_ok(), "{:?}\n{module}", verify_module(module).err());
    let text = module.to_string();
    let operators = module.cx.ops.registry().clone();
    let again = parse_module(Source::new("again", text.clone()), operators).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    assert_eq!(again.to_string(), text);
}

struct InPlace;
impl Mutator for InPlace {
    type Error = RewriteError;
}
struct Copied;
impl Mutator for Copied {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Copied;
}
struct Scoped;
impl Mutator for Scoped {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Scoped;
}

/// Replaces aliases, and flattens blocks as values.
struct Tidy;
impl Mutator for Tidy {
    type Error = RewriteError;
    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Some(binding) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
        Ok(match site.editor.body.expr(binding.value) {
            Expr::Let { .. } => Verdict::Splice(binding.value),
            expr if expr.is_atom() => Verdict::Var(binding.value),
            _ => Verdict::Keep,
        })
    }
}

#[test]
fn the_generator_makes_every_construct() {
    let module = Random { vocabulary: Vocabulary::Arithmetic, size: 2000, seed: 2 }.module();
    let counts = Counts::of_body(body(&module));
    assert!(counts.ifs > 5 && counts.lambdas > 5 && counts.regions > 5 && counts.depth > 3, "{counts:?}");
    assert!(module.to_string().contains("\n  %"), "no node is shared");
    check_whole(&module);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn mutators_that_do_nothing_write_nothing(random in random()) {
        let mut module = random.module();
        check_whole(&module);
        let len = body(&module).len();
        prop_assert!(!edit(&mut module, |editor| mutate(editor, &mut InPlace).unwrap()));
        prop_assert!(!edit(&mut module, |editor| mutate(editor, &mut Copied).unwrap()));
        prop_assert_eq!(body(&module).len(), len);
        let before = module.to_string();
        // Shared nodes that hold blocks are copied, and nothing else changes.
        edit(&mut module, |editor| mutate(editor, &mut Scoped).unwrap());
        prop_assert_eq!(module.to_string(), before);
    }

    #[test]
    fn a_copy_is_the_same_but_for_its_variables(random in random()) {
        let mut module = random.module();
        let original = module.clone();
        edit(&mut module, |editor| {
            let root = editor.body.root();
            let copy = copy_fresh(editor, root);
            assert_eq!(free_variables(editor.body, copy), free_variables(editor.body, root));
            editor.body.set_root(copy);
        });
        prop_assert!(alpha_equal(&original, &module));
        prop_assert_eq!(module.to_string(), original.to_string());
    }

    #[test]
    fn tidying_leaves_a_whole_program_and_nothing_to_tidy(random in random()) {
        let mut module = random.module();
        edit(&mut module, |editor| mutate(editor, &mut Tidy).unwrap());
        check_whole(&module);
        let text = module.to_string();
        prop_assert!(!edit(&mut module, |editor| mutate(editor, &mut Tidy).unwrap()), "{}", text);
    }

    #[test]
    fn a_substituted_variable_is_free_no_more(random in random()) {
        let mut module = random.module();
        let had = free_variables(body(&module), body(&module).root());
        let x = body(&module).params()[0];
        let changed = edit(&mut module, |editor| {
            let one = editor.literal(Literal::scalar(1i32));
            substitute(editor, Link::Root, &[(x, one)]).unwrap();
        });
        // The result may have known elements.
        let main = first(&module);
        let (function, cx) = module.get_mut(main).unwrap();
        let params: Vec<_> = function.body.params().iter().map(|p| function.body.ty(p.expr())).collect();
        let signature = signature_type(cx, &params, function.body.type_of(function.body.root()));
        let global = function.global().unwrap();
        module.set_signature(global, signature);
        let has = free_variables(body(&module), body(&module).root());
        prop_assert!(!has.contains(&x));
        prop_assert_eq!(changed, had.contains(&x));
        check_whole(&module);
    }
}
