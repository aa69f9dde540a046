//! Every rule of the passes that consist of rules, and every decomposition, on the functions in its
//! file tests and on random numbers of every element type, judged by the interpreter.
//!
//! A function of a file test is an instance of the rules that change it. It is written once, for
//! one element type, which is that of its first parameter. The test writes it for all other element
//! types as well; an instance that is then no program is left out. Rules of exact passes must keep
//! every bit, for ordinary and for extreme numbers (NaN, infinities, zeros of both signs, the
//! largest and smallest numbers). Rules of other passes must agree with the ordinary numbers within
//! the tolerance of the pass, and of 16-bit floats within [`HALVES`]; for extreme numbers, they
//! must return something.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anfora_interp::{Agreement, ArgumentGenerator, Interpreter, Numbers};
use anfora_ir::{Module, Source, parse_module};
use anfora_manager::PassContext;
use anfora_passes::{registry, rules_of, same_meaning};
use anfora_testing::programs::with_type;

/// The element types, with the suffixes of their literals.
const TYPES: [(&str, &str); 13] = [
    ("float32", "f"),
    ("float16", "f16"),
    ("bfloat16", "bf16"),
    ("float64", "f64"),
    ("int8", "i8"),
    ("int16", "i16"),
    ("int32", "i32"),
    ("int64", "i64"),
    ("uint8", "u8"),
    ("uint16", "u16"),
    ("uint32", "u32"),
    ("uint64", "u64"),
    ("bool", ""),
];

/// The tolerance of results of 16-bit floats, which each of the replaced operators rounds.
const HALVES: [(&str, f64); 2] = [("float16", 0.01), ("bfloat16", 0.08)];

/// Returns the functions of the inputs of the file tests of a pass.
fn instances(pass: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files").join(pass);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let (input, expected) = text.split_once('\n').unwrap().1.split_once("// ----\n").unwrap();
        // The pass refuses the program.
        if expected.starts_with("// error") {
            continue;
        }
        let lines: Vec<&str> = input.lines().filter(|line| !line.starts_with("//")).collect();
        let input = format!("\n{}", lines.join("\n"));
        all.extend(input.split("\ndef ").skip(1).map(|function| (path.clone(), format!("def {function}"))));
    }
    all
}

/// Returns the element type of the first parameter.
fn own_type(function: &str) -> Option<(&'static str, &'static str)> {
    let at = |ty: &(&str, &str)| {
        let found = function.match_indices(ty.0).find(|&(at, _)| !function[..at].ends_with(['b', 'u']));
        found.map(|(at, _)| at)
    };
    TYPES.into_iter().filter(|ty| at(ty).is_some()).min_by_key(|ty| at(ty))
}

fn parse(text: &str) -> Option<Module> {
    parse_module(Source::new("instance", text), anfora_ops::standard()).ok()
}

/// Runs a pass; returns the module and the rules that changed it.
fn rewritten(pass: &str, module: &Module) -> (Module, Vec<&'static str>) {
    let cx = PassContext::builder().registry(registry()).opt_level(3).build().unwrap();
    let mut module = module.clone();
    registry().make(pass).unwrap().apply(&mut module, &cx).unwrap();
    let fired = cx.statistics().rows().iter().map(|row| row.counter).collect();
    (module, fired)
}

/// Returns the first difference between two modules of one function on ordinary numbers, some of
/// them in tensors without elements. It is a fault if a function of known ranks runs on none.
fn difference(before: &Module, after: &Module, agreement: Agreement) -> Option<String> {
    let (key, function) = before.functions().next()?;
    let name = before.name(key);
    let cases = [(Numbers::Ordinary, [2, 3]), (Numbers::Extreme, [2, 3]), (Numbers::Ordinary, [0, 2])];
    let cases = cases.into_iter().flat_map(|(numbers, extents)| (0..4).map(move |seed| (seed, numbers, extents)));
    let mut runs = 0;
    for (seed, numbers, extents) in cases {
        let draw = ArgumentGenerator::new(seed).numbers(numbers).extents(&extents);
        let Ok(arguments) = draw.arguments(&before.cx, function) else { continue };
        let run = |module| Interpreter::new(module).call(name, arguments.values.clone(), &arguments.list);
        let Ok(expected) = run(before) else { continue };
        runs += 1;
        match run(after) {
            Err(error) => return Some(error.to_string()),
            Ok(found) if numbers == Numbers::Ordinary => {
                if let Some(difference) = agreement.first_difference(&expected, &found) {
                    return Some(format!("{difference} (seed {seed})"));
                }
            }
            Ok(_) => {}
        }
    }
    let has_known_ranks = !before.to_text().contains('?');
    (runs == 0 && has_known_ranks).then(|| "it runs on no arguments".to_owned())
}

/// Checks a pass that consists of rules; returns what is wrong.
fn faults_of(pass: &str) -> Vec<String> {
    faults_of_rules(pass, rules_of(pass).unwrap().names())
}

/// Checks a pass that counts the changes of each of its rules; returns what is wrong.
fn faults_of_rules<'a>(pass: &str, rules: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let tolerance = registry().make(pass).unwrap().info().tolerance;
    let mut faults = Vec::new();
    let mut covered: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, function) in instances(pass) {
        let Some(own) = own_type(&function) else { continue };
        for other in TYPES {
            let text = with_type(&function, own, other);
            let Some(module) = parse(&text) else { continue };
            let (after, fired) = rewritten(pass, &module);
            if fired.is_empty() {
                continue;
            }
            let fault = if tolerance == 0.0 {
                same_meaning(&module, &after, Agreement::Exact).err().map(|error| error.to_string())
            } else {
                let halves = HALVES.iter().find(|(name, _)| *name == other.0).map(|&(_, tolerance)| tolerance);
                difference(&module, &after, Agreement::Within(halves.unwrap_or(tolerance)))
            };
            if let Some(fault) = fault {
                let file = path.file_name().unwrap().to_string_lossy();
                faults.push(format!("{file}, {}: {fault}\n{}\n{fired:#?}\n{after}", other.0, text.trim()));
            }
            fired.into_iter().for_each(|rule| covered.entry(rule).or_default().extend([other.0]));
        }
    }
    for rule in rules.into_iter().filter(|rule| !covered.contains_key(rule)) {
        faults.push(format!("no function in tests/files/{pass} is changed by the rule `{rule}`"));
    }
    faults
}

#[test]
fn every_rule_of_simplify_expr_keeps_every_bit_of_every_element_type() {
    let faults = faults_of("SimplifyExpr");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn every_rule_of_fuse_standard_ops_agrees_within_its_tolerance() {
    let faults = faults_of("FuseStandardOps");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn every_decomposition_agrees_with_the_kernel_within_its_tolerance() {
    let registry = anfora_ops::standard();
    let composite: Vec<&str> =
        registry.rows().filter(|(_, row)| row.decomposition.is_some()).map(|(_, row)| &*row.name).collect();
    assert!(composite.len() >= 45, "{composite:?}");
    let faults = faults_of_rules("DecomposeOps", composite);
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn instances_are_written_for_other_types() {
    let text = "def @f(%x: Tensor[(2, 3), float32]) { let %a1 = add(%x, -0.5f); let %b = add(%a1, -inff); permute_dims(%a1, axes=[1, 0]) }";
    let expected = "def @f(%x: Tensor[(2, 3), bfloat16]) { let %a1 = add(%x, -0.5bf16); let %b = add(%a1, -infbf16); permute_dims(%a1, axes=[1, 0]) }";
    assert_eq!(own_type(text), Some(("float32", "f")));
    assert_eq!(with_type(text, TYPES[0], TYPES[2]), expected);
}
