//! Modules as text around passes, and the changes that passes make to the text.

use std::sync::{Arc, Mutex};

use anfora_ir::{Expr, PrintLiterals, PrintOptions};
use anfora_manager::{Instrument, ModulePass, Outcome, Pass, PassContext, PrintIr, PrintWhen, Sequential};
use expect_test::{Expect, expect};

use crate::support::{add_function, bump, bumps, empty_module, idle, module, module_of};

/// A buffer to print to.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }

    /// Returns the headings.
    fn headings(&self) -> Vec<String> {
        self.take().lines().filter(|l| l.starts_with("// ")).map(str::to_string).collect()
    }
}

fn with(print: PrintIr) -> PassContext {
    PassContext::builder().instrument(Arc::new(print)).build().unwrap()
}

fn named(name: &str) -> PrintWhen {
    PrintWhen::Named(vec![name.to_string()])
}

#[test]
fn modules_are_printed_around_passes() {
    let page = Page::default();
    for (print, headings) in [
        (PrintIr::changed(page.clone()), vec!["// after a", "// after c"]),
        (PrintIr::new(named("b"), named("c"), page.clone()), vec!["// before b", "// after c"]),
        (PrintIr::new(PrintWhen::Never, named("sequential"), page.clone()), vec!["// after sequential"]),
        (
            PrintIr::new(PrintWhen::Always, PrintWhen::Never, page.clone()),
            vec!["// before a", "// before b", "// before c"],
        ),
        (PrintIr::new(PrintWhen::Never, named("b"), page.clone()).only_changed(), vec![]),
        (PrintIr::diff(page.clone()), vec!["// after a", "// after c"]),
        (
            PrintIr::new(named("b"), named("sequential"), page.clone()).as_diff(),
            vec!["// before b", "// after sequential"],
        ),
    ] {
        let cx = with(print);
        let passes = Sequential::new(vec![Arc::new(bump("a")), Arc::new(idle("b", 0)), Arc::new(bump("c"))]).unwrap();
        passes.apply(&mut empty_module(), &cx).unwrap();
        assert_eq!(page.headings(), headings);
    }
}

#[test]
fn a_page_that_cannot_be_written_fails_the_pass() {
    struct Full(std::io::ErrorKind);
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::new(self.0, "the disk is full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let cx = with(PrintIr::changed(Full(std::io::ErrorKind::StorageFull)));
    let mut module = empty_module();
    let failure = bump("a").apply(&mut module, &cx).unwrap_err();
    assert_eq!(
        failure.to_diagnostics()[0].message,
        "pass `a` failed in PrintIr (run_after): the module cannot be printed: the disk is full"
    );
    assert_eq!(bumps(&module), 0);
    // A broken pipe is not a failure.
    let cx = with(PrintIr::changed(Full(std::io::ErrorKind::BrokenPipe)));
    bump("a").apply(&mut module, &cx).unwrap();
    assert_eq!(bumps(&module), 1);
}

/// Runs a pass over three functions, and returns the printed text.
fn printed(print: impl Fn(Page) -> PrintIr, pass: &dyn Pass) -> String {
    let page = Page::default();
    let cx = with(print(page.clone()));
    let _ = pass.apply(&mut module(), &cx);
    page.take()
}

fn check(print: impl Fn(Page) -> PrintIr, pass: &dyn Pass, expected: Expect) {
    expected.assert_eq(&printed(print, pass));
}

/// Makes the last binding of a function add the variable before it to itself.
fn edits(name: &'static str) -> ModulePass {
    ModulePass::new("Edit", 0, move |module, _| {
        let key = module.find(name).ok_or("no such function")?;
        let (function, _) = module.get_mut(key).ok_or("it is gone")?;
        let body = &mut function.body;
        let mut operands = None;
        let mut at = body.root();
        while let Expr::Let { value, body: next, .. } = body.expr(at) {
            if let Expr::CallOp { operands: list, .. } = body.expr(value) {
                operands = Some(list);
            }
            at = next;
        }
        let operands = operands.ok_or("no call")?;
        let first = body.operands(operands)[0];
        body.set_operand(operands, 1, first);
        Ok(())
    })
}

#[test]
fn a_diff_shows_the_functions_that_changed() {
    check(
        PrintIr::diff,
        &edits("g"),
        expect![[r#"
        // after Edit
        --- @g before Edit
        +++ @g after Edit
        @@ -1,6 +1,6 @@
         def @g(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
           let %a = add(%x, %x);
           let %b = negate(%a);
        -  let %c = add(%b, %a);
        +  let %c = add(%b, %b);
           %c
         }

    "#]],
    );
}

#[test]
fn a_diff_shows_what_came_what_went_what_is_called_otherwise_and_what_the_module_says() {
    let pass = ModulePass::new("Rearrange", 0, |module, _| {
        let f = module.find("f").expect("there is @f");
        module.remove(&[f]);
        let g = module.find("g").and_then(|g| module.get(g)).and_then(|g| g.global()).expect("there is @g");
        let name = module.cx.names.intern("renamed");
        assert!(module.rename(g, name));
        add_function(module, "new");
        let mut order = module.order().to_vec();
        order.reverse();
        module.set_order(order);
        crate::support::set_bumps(module, 1);
        Ok(())
    });
    check(
        PrintIr::diff,
        &pass,
        expect![[r#"
        // after Rearrange
        --- the module before Rearrange
        +++ the module after Rearrange
        @@ -0,0 +1 @@
        +#![bumps=1]
        --- /dev/null
        +++ @new after Rearrange
        @@ -0,0 +1,6 @@
        +def @new(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        +  let %a = add(%x, %x);
        +  let %b = negate(%a);
        +  let %c = add(%b, %a);
        +  %c
        +}
        --- @g before Rearrange
        +++ @renamed after Rearrange
        @@ -1,4 +1,4 @@
        -def @g(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        +def @renamed(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
           let %a = add(%x, %x);
           let %b = negate(%a);
           let %c = add(%b, %a);
        --- @f before Rearrange
        +++ /dev/null
        @@ -1,6 +0,0 @@
        -def @f(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
        -  let %a = add(%x, %x);
        -  let %b = negate(%a);
        -  let %c = add(%b, %a);
        -  %c
        -}
        // the functions are in another order

    "#]],
    );
}

#[test]
fn only_the_functions_that_were_asked_for_are_printed() {
    let of_g = |page| PrintIr::diff(page).functions(["g"]);
    assert!(printed(of_g, &edits("g")).contains("--- @g before Edit"));
    assert_eq!(printed(of_g, &edits("f")), "// after Edit\n// nothing that is shown is different\n\n");
    let text =
        printed(|page| PrintIr::new(PrintWhen::Never, PrintWhen::Always, page).functions(["g", "h"]), &edits("f"));
    assert!(
        text.starts_with("// after Edit\ndef @g(") && text.contains("\n\ndef @h(") && !text.contains("@f"),
        "{text}"
    );
    let text = printed(|page| PrintIr::changed(page).functions(["f", "g"]), &edits("f"));
    assert!(text.starts_with("// after Edit\ndef @f(") && !text.contains("@g"), "{text}");
    assert_eq!(printed(|page| PrintIr::changed(page).functions(["g"]), &edits("f")), "");
}

#[test]
fn constants_are_left_out_where_that_is_asked_for() {
    let pass = ModulePass::new("Constant", 0, |module, _| {
        let values: Vec<f32> = (0..100u8).map(f32::from).collect();
        let literal = anfora_ir::Literal::from_elements(&[100], &values)?;
        let attr = module.cx.literals.intern(literal);
        let attr = module.cx.attr(anfora_ir::Attr::Literal(attr));
        let attrs = module.cx.with_attr(module.attrs(), "table", Some(attr));
        module.set_attrs(attrs);
        Ok(())
    });
    let brief = PrintOptions { literals: PrintLiterals::Elided { more_than: 16 }, ..PrintOptions::default() };
    let text = printed(|page| PrintIr::diff(page).options(brief), &pass);
    assert!(text.contains("dense<Tensor[(100,), float32]>[elided 100]"), "{text}");
    assert!(!printed(PrintIr::diff, &pass).contains("elided"));
}

#[test]
fn a_pass_that_fails_is_said_to_have() {
    let fails = ModulePass::new("fails", 0, |module, _| {
        crate::support::set_bumps(module, 7);
        Err("no".into())
    });
    let passes = Sequential::new(vec![Arc::new(bump("a")), Arc::new(fails)]).unwrap();
    let page = Page::default();
    let print: Arc<dyn Instrument> = Arc::new(PrintIr::diff(page.clone()));
    let cx = PassContext::builder().instrument(print).build().unwrap();
    let mut module = module();
    passes.apply(&mut module, &cx).unwrap_err();
    // The next diff compares with the module after the rollback, not with the rolled-back changes.
    bump("b").apply(&mut module, &cx).unwrap();
    expect![[r#"
        // after a
        --- the module before a
        +++ the module after a
        @@ -0,0 +1 @@
        +#![bumps=1]

        // fails failed, and its changes were rolled back

        // after b
        --- the module before b
        +++ the module after b
        @@ -1 +1 @@
        -#![bumps=1]
        +#![bumps=2]

    "#]]
    .assert_eq(&page.take());
}

#[test]
fn a_pass_prints_the_module_where_the_context_says() {
    let mut registry = anfora_manager::PassRegistry::new();
    registry.register(anfora_manager::PRINT_IR).unwrap();
    registry.register_pass(crate::support::bump("Bump"), "").unwrap();
    let registry = Arc::new(registry);
    let written = Page::default();
    let cx = PassContext::builder().registry(registry.clone()).print_to(written.clone()).build().unwrap();
    let text = r#"PrintIR,PrintIR{header="before the\nbump"},Bump,PrintIR{header="after folding"}"#;
    let pipeline = anfora_manager::parse_pipeline(&registry, &text.replace("\\n", "\n")).unwrap();
    let mut module = module_of(&["f"]);
    let before = module.to_string();
    assert!(pipeline.apply(&mut module, &cx).unwrap().is_changed());
    let after = module.to_string();
    assert_ne!(before, after);
    assert_eq!(
        written.take(),
        format!(
            "// PrintIR\n{before}\n// PrintIR: before the\n// bump\n{before}\n// PrintIR: after folding\n{after}\n"
        )
    );
    // A derived context prints to the same output; the module is unchanged.
    let derived = cx.derive().opt_level(0).build().unwrap();
    let print = registry.make("PrintIR").unwrap();
    assert_eq!(print.apply(&mut module, &derived).unwrap(), Outcome::Unchanged);
    assert_eq!(written.take(), format!("// PrintIR\n{after}\n"));
}

#[test]
fn a_pass_whose_text_nobody_reads_any_more_goes_on_and_one_that_cannot_write_fails() {
    struct Failing(std::io::ErrorKind);
    impl std::io::Write for Failing {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut registry = anfora_manager::PassRegistry::new();
    registry.register(anfora_manager::PRINT_IR).unwrap();
    let print = registry.make("PrintIR").unwrap();
    for (kind, fails) in [(std::io::ErrorKind::BrokenPipe, false), (std::io::ErrorKind::StorageFull, true)] {
        let cx = PassContext::builder().print_to(Failing(kind)).build().unwrap();
        let mut module = module_of(&["f"]);
        assert_eq!(print.apply(&mut module, &cx).is_err(), fails);
    }
}
