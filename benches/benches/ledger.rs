//! The cost of the ledger of rewrites: O2 on a chain, under contexts with different requests. The
//! contexts take turns, so that a slow moment of the machine meets all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anfora::ir::{Module, RewriteOptions};
use anfora::manager::{PassContext, PassContextBuilder, Verification};
use anfora::report::Recorder;
use anfora_benches::programs::CHAIN;
use anfora_benches::run_under;

/// The number of bindings of the program.
const LENGTH: usize = 100_000;

/// The number of times that each context has its turn.
const ROUNDS: usize = 15;

/// A request: its name, and the context with it.
type Request = (&'static str, fn(PassContextBuilder) -> PassContextBuilder);

const REQUESTS: [Request; 5] = [
    ("no request", |builder| builder),
    ("no request, again", |builder| builder),
    ("a limit that is not reached", |builder| builder.limit_rewrites(1 << 40)),
    ("why-not of a binding", |builder| {
        let explained = "FoldConstant@%v7".parse().into_iter().collect();
        builder.rewrites(RewriteOptions { explained, ..RewriteOptions::default() })
    }),
    ("a recorder", |builder| builder.instrument(Arc::new(Recorder::new()))),
];

fn main() {
    let registry = anfora::passes::registry();
    let input: Module = CHAIN.build(LENGTH);
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); REQUESTS.len()];
    for _ in 0..ROUNDS {
        for ((_, request), times) in REQUESTS.iter().zip(&mut times) {
            let builder = PassContext::builder().registry(registry.clone()).verification(Verification::Off);
            let context = request(builder).build().expect("nothing is set that could be wrong");
            let mut module = input.clone();
            let start = Instant::now();
            run_under(&context, "O2", &mut module);
            times.push(start.elapsed());
        }
    }
    let first: Vec<f64> = times[0].iter().map(Duration::as_secs_f64).collect();
    for ((name, _), times) in REQUESTS.iter().zip(times) {
        let times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
        // The ratios are those of the turns of one round.
        let ratios = times.iter().zip(&first).map(|(time, first)| time / first).collect();
        let micros = median(times) * 1e6 / LENGTH as f64;
        println!("{name}: {micros:.3} us a binding, ratio {:.2}", median(ratios));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
