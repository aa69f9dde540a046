//! The distribution of functions over threads.

use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use anfora_ir::{Diagnostic, FunctionBuilder, Module};
use anfora_manager::{FunctionPass, MAX_THREADS, Pass, PassContext};

use crate::support::{add_function, module_of, unverified};

/// Returns a context that distributes work for modules of any size.
fn context(threads: usize) -> PassContext {
    unverified().threads(threads).worth_sharing(0).build().unwrap()
}

/// Returns a module with a function for each number, which has about that many nodes.
fn functions(sizes: impl IntoIterator<Item = usize>) -> Module {
    let mut module = module_of(&[]);
    for (i, size) in sizes.into_iter().enumerate() {
        let mut f = FunctionBuilder::new(&mut module, &format!("f{i}"));
        let mut last = f.tuple(&[]);
        for _ in 0..size {
            last = f.tuple(&[last]);
        }
        f.finish(last).unwrap();
    }
    module
}

/// Makes a pass that leaves a remark with the name of each function, and notes the thread of each.
fn look(seen: &Arc<Mutex<Vec<(usize, ThreadId)>>>) -> FunctionPass {
    let seen = seen.clone();
    FunctionPass::new("look", 0, move |func, _, cx| {
        let number = func.name()[1..].parse().unwrap();
        seen.lock().unwrap().push((number, thread::current().id()));
        cx.remark(Diagnostic::remark(func.name()));
        Ok(())
    })
}

#[test]
fn results_are_in_the_order_of_the_functions() {
    for threads in [1, 2, 3, 8] {
        for n in [0, 1, 2, 5, 1000] {
            let cx = context(threads);
            let sizes = (0..n).map(|i| if i % 97 == 13 { 1000 } else { i % 5 });
            look(&Arc::default()).apply(&mut functions(sizes), &cx).unwrap();
            let messages: Vec<String> = cx.take_remarks().into_iter().map(|r| r.diagnostic.message).collect();
            assert_eq!(messages, (0..n).map(|i| format!("f{i}")).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_thread_takes_many_small_functions_at_a_time() {
    for n in [1000, 10_000] {
        let seen = Arc::default();
        let sizes = (0..n).map(|i| if i % 997 == 13 { 20_000 } else { 1 + i % 5 });
        look(&seen).apply(&mut functions(sizes), &context(2)).unwrap();
        let mut seen = std::mem::take(&mut *seen.lock().unwrap());
        seen.sort_unstable_by_key(|&(number, _)| number);
        assert_eq!(seen.len(), n);
        let switches = seen.windows(2).filter(|w| w[0].1 != w[1].1).count();
        assert!(switches <= 200, "{switches} of {n}");
    }
}

#[test]
fn work_inside_of_shared_work_stays_on_its_thread() {
    let mut outer = module_of(&[]);
    (0..16).for_each(|i| add_function(&mut outer, &format!("f{i}")));
    let pass = FunctionPass::new("outer", 0, |_, _, cx| {
        let outside = thread::current().id();
        for inner in [cx, &context(2)] {
            let seen = Arc::default();
            look(&seen).apply(&mut functions([1; 4]), inner)?;
            let seen: Vec<_> = std::mem::take(&mut *seen.lock().unwrap());
            if seen != [(0, outside), (1, outside), (2, outside), (3, outside)] {
                return Err("another thread took part".into());
            }
        }
        Ok(())
    });
    pass.apply(&mut outer, &context(2)).unwrap();
}

#[test]
fn zero_threads_are_those_of_the_machine() {
    assert!(context(0).threads() >= 1);
    assert_eq!(context(1_000_000).threads(), MAX_THREADS);
}
