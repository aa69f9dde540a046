//! Tests that spliced blocks have one parent.

use anfora_ir::{ExprId, IntoDiagnostics};
use anfora_visit::{Binding, LetList, Mutator, RewriteError, Site, Slot, Verdict, chain, copy_fresh, mutate};

use crate::programs::edited;

/// Rewrites bindings by a function. It gets the name of the variable, and a place to remember an
/// expression.
pub(crate) struct OnBinding<F>(pub(crate) F, pub(crate) Option<ExprId>);

impl<F> Mutator for OnBinding<F>
where
    F: FnMut(&mut Site<'_>, &str, Binding, &mut Option<ExprId>) -> Result<Verdict, RewriteError>,
{
    type Error = RewriteError;

    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Some(binding) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
        let name = site.editor.body.var_name(binding.var);
        let name = name.map_or(String::new(), |n| site.editor.cx.names.get(n).to_string());
        (self.0)(site, &name, binding, &mut self.1)
    }
}

/// Returns the error of a rewrite of bindings by a function, which gets a place to remember an
/// expression.
fn error(
    text: &str,
    on_binding: impl FnMut(&mut Site<'_>, &str, Binding, &mut Option<ExprId>) -> Result<Verdict, RewriteError>,
) -> String {
    let mut found = String::new();
    let mut on_binding = OnBinding(on_binding, None);
    edited(text, |editor| {
        editor.body.begin_journal();
        found = mutate(editor, &mut on_binding).expect_err("the splice is refused").to_string();
        editor.body.rollback_journal();
    });
    found
}

const BLOCK: &str = "def @main(%x: float32) { let %y = { let %a = negative(%x); let %b = negative(%a); negative(%b) }; let %z = negative(%y); %z }";

fn is_refused(name: &str, found: &str) {
    assert_eq!(
        found,
        format!(
            "the binding of `%{name}` was spliced, but is also used at another place of the program; splice a copy: `copy_fresh`"
        )
    );
}

#[test]
fn the_same_block_twice_is_an_error() {
    // By a verdict, after the block was spliced before the binding.
    is_refused(
        "b",
        &error(BLOCK, |site, name, binding, _| match name {
            "y" => {
                site.splice(binding.value)?;
                Ok(Verdict::Splice(binding.value))
            }
            _ => Ok(Verdict::Keep),
        }),
    );
    // The block stays the value as well.
    is_refused(
        "a",
        &error(BLOCK, |site, name, binding, _| {
            if name == "y" {
                site.splice(binding.value)?;
            }
            Ok(Verdict::Keep)
        }),
    );
    // The block is spliced again for the next binding.
    let mut found = error(BLOCK, |_, name, binding, block| match name {
        "y" => {
            *block = Some(binding.value);
            Ok(Verdict::Splice(binding.value))
        }
        "z" => Ok(Verdict::Splice(block.expect("%y comes first"))),
        _ => Ok(Verdict::Keep),
    });
    is_refused("y", &found);
    // The block stays the value of the previous binding.
    found = error(BLOCK, |_, name, binding, block| match name {
        "y" => {
            *block = Some(binding.value);
            Ok(Verdict::Keep)
        }
        "z" => Ok(Verdict::Splice(block.expect("%y comes first"))),
        _ => Ok(Verdict::Keep),
    });
    is_refused("a", &found);
}

#[test]
fn a_part_of_the_chain_itself_is_an_error() {
    // The expressions after the binding, and those before it.
    is_refused(
        "z",
        &error(BLOCK, |_, name, binding, _| match name {
            "y" => Ok(Verdict::Splice(binding.rest)),
            _ => Ok(Verdict::Keep),
        }),
    );
    is_refused(
        "y",
        &error(BLOCK, |site, name, _, _| match name {
            "z" => Ok(Verdict::Splice(site.editor.body.root())),
            _ => Ok(Verdict::Keep),
        }),
    );
    // The chain around a block, spliced into the block.
    is_refused(
        "y",
        &error(BLOCK, |site, name, _, _| match name {
            "b" => Ok(Verdict::Splice(site.editor.body.root())),
            _ => Ok(Verdict::Keep),
        }),
    );
}

#[test]
fn a_copy_is_spliced_as_often_as_one_likes() {
    let text = edited(BLOCK, |editor| {
        let mut twice = OnBinding(
            |site: &mut Site<'_>, name: &str, binding: Binding, _: &mut Option<ExprId>| match name {
                "y" => {
                    let copy = copy_fresh(&mut site.editor, binding.value);
                    site.splice(copy)?;
                    Ok(Verdict::Splice(binding.value))
                }
                _ => Ok(Verdict::Keep),
            },
            None,
        );
        mutate(editor, &mut twice).unwrap();
        assert_eq!(chain(editor.body, editor.body.root()).count(), 6);
    });
    assert_eq!(text.matches("let %a").count(), 2, "{text}");
}

#[test]
fn a_list_takes_a_block_once() {
    edited(BLOCK, |editor| {
        let root = editor.body.root();
        let rest = chain(editor.body, root).nth(1).unwrap().id;
        for again in [root, rest] {
            editor.body.begin_journal();
            let mut list = LetList::new();
            let tail = list.splice(editor, root).unwrap();
            let refused = list.splice(editor, again).unwrap_err();
            assert_eq!(refused, RewriteError::SplicedTwice { name: "z".to_string() });
            let said = refused.into_diagnostics();
            assert_eq!(said.iter().next().and_then(|d| d.binding.as_deref()), Some("z"));
            // A refused splice changes nothing: the chain still ends.
            assert_eq!(chain(editor.body, root).take(10).count(), 2);
            assert!(editor.body.as_var(tail).is_some());
            editor.body.rollback_journal();
        }
    });
}

#[test]
fn a_chain_in_front_of_itself_is_refused() {
    let panic = std::panic::catch_unwind(|| {
        edited(BLOCK, |editor| {
            let root = editor.body.root();
            let last = chain(editor.body, root).last().unwrap().id;
            anfora_visit::splice_before(editor.body, anfora_visit::Link::Rest(last), root);
        })
    })
    .unwrap_err();
    let message = panic.downcast_ref::<String>().cloned();
    let message = message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap();
    assert!(message.contains("a block cannot be spliced into its own chain"), "{message}");
}
