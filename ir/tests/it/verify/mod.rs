//! The rules of well-formed programs, each with programs that break only that rule.

mod ids_and_links;
mod modules;
mod programs;
mod reports;
mod scopes_and_regions;
mod types_and_symbols;

use anfora_ir::{Form, Module, verify_function, verify_module};
use programs::{BRANCH, CHAIN, LAMBDA, REGION, assert_fine, parse};

/// Breaks one rule in all possible ways.
type Breaks = fn(&mut Rule);

/// Each rule of the checklist in the verifier's module: its number, its title, and the functions
/// that break it.
const RULES: &[(u32, &str, &[Breaks])] = &[
    (
        1,
        "Ids",
        &[
            ids_and_links::rule_1_ids_are_in_range,
            ids_and_links::rule_1_what_a_let_binds_is_a_variable_of_the_body,
            ids_and_links::rule_1_parts_of_values_exist,
            ids_and_links::rule_1_ids_of_the_function_are_in_range,
        ],
    ),
    (2, "One parent", &[ids_and_links::rule_2_what_binds_has_one_parent]),
    (3, "No cycles", &[ids_and_links::rule_3_nothing_is_part_of_itself]),
    (4, "Binding", &[ids_and_links::rule_4_a_variable_is_bound_once]),
    (
        5,
        "Scope",
        &[
            scopes_and_regions::rule_5_a_variable_is_used_where_it_is_visible,
            scopes_and_regions::rule_5_a_shared_node_is_used_where_its_variables_are_visible,
        ],
    ),
    (6, "Regions", &[scopes_and_regions::rule_6_regions_are_well_formed]),
    (7, "What regions hold", &[scopes_and_regions::rule_7_regions_hold_no_control_flow_and_no_side_effect]),
    (8, "Sharing and effects", &[scopes_and_regions::rule_8_shared_nodes_are_pure]),
    (9, "Calls", &[types_and_symbols::rule_9_operands_and_attributes_agree_with_the_row]),
    (10, "Types", &[types_and_symbols::rule_10_stored_types_are_what_inference_gives]),
    (11, "Symbols", &[types_and_symbols::rule_11_symbols_are_named_where_they_are_bound]),
    (12, "Globals", &[modules::rule_12_globals_resolve_and_signatures_agree]),
    (13, "Phase", &[modules::rule_13_a_claimed_phase_is_true]),
];

/// The messages of the verifier for broken rules, and the rules that each belongs to.
const MESSAGES: &[(&str, &[u32])] = &[
    ("does not exist", &[1]),
    ("do not exist", &[1]),
    ("is not a variable", &[1]),
    ("a call without a function", &[1]),
    ("a let has two links to it, or is part of itself", &[2, 3]),
    ("an `if` has two links to it", &[2]),
    ("a `fn` has two links to it", &[2]),
    ("an expression is part of itself", &[3]),
    ("is bound twice", &[4]),
    ("is used where nothing has bound it", &[5]),
    ("is used outside its scope", &[5]),
    ("a shared node is used where", &[5]),
    ("follows none that starts the region", &[6]),
    ("is visible only in its dataflow region, but used outside", &[6]),
    ("is visible only in a dataflow region, but bound outside", &[6]),
    ("the parameter `%x` is visible only in a dataflow region", &[6]),
    ("a dataflow region holds no control flow", &[7]),
    ("a dataflow region holds no side effect", &[7]),
    ("a shared node may have a side effect", &[8]),
    ("takes 2 operands, not 1", &[9]),
    ("has no attribute", &[9]),
    ("not in their one form", &[9]),
    ("the stored type is", &[10]),
    ("its parts give", &[10]),
    ("but its value is", &[10]),
    ("a condition is a rank-0 bool tensor", &[10]),
    ("is stated", &[10]),
    ("the function takes 1 arguments, not 0", &[10]),
    ("is named where it is not bound", &[11]),
    ("is bound in another function too", &[11]),
    ("nothing defines or declares", &[12]),
    ("the signature of the function is", &[12]),
    ("a declaration states no result type", &[12]),
    ("does not lead back to it", &[12]),
    ("has no name", &[12]),
    ("the program order names a function that is not there", &[12]),
    ("is a string that is not empty", &[12]),
    ("has the symbol", &[12]),
    ("not in A-normal form", &[13]),
    ("holds a `fn`", &[13]),
    ("has a dataflow region", &[13]),
    ("has no `global_symbol`", &[13]),
    ("not a number", &[13]),
];

/// The rule that is being tested.
struct Rule {
    number: u32,
    /// The messages of the rule that were seen, by their indices in [`MESSAGES`].
    seen: Vec<usize>,
}

impl Rule {
    /// Checks that there is one error, that its message contains `what` and is about this rule, and
    /// that it is in this function and binding, such as `@f %x`.
    #[track_caller]
    fn broken_by(&mut self, m: &Module, what: &str, place: &str) {
        let text = assert_breaks(m, what, place);
        let said: Vec<usize> = (0..MESSAGES.len()).filter(|&i| text.contains(MESSAGES[i].0)).collect();
        assert!(!said.is_empty(), "{text:?} is not among the messages of the rules");
        for &i in &said {
            assert!(MESSAGES[i].1.contains(&self.number), "{text:?} is not about rule {}", self.number);
        }
        self.seen.extend(said);
    }
}

#[track_caller]
fn assert_breaks(m: &Module, what: &str, place: &str) -> String {
    let errors = verify_module(m).expect_err("it breaks a rule");
    let [error] = &errors[..] else { panic!("{errors:#?}") };
    let text = error.to_string();
    assert!(text.contains(what), "{text:?} does not say {what:?}");
    let function = error.function.iter().map(|f| format!("@{f}"));
    let named: Vec<String> = function.chain(error.binding.iter().map(|b| format!("%{b}"))).collect();
    assert_eq!(named.join(" "), place, "{text}");
    text
}

/// Every rule has programs that break it and no other, and each of its messages is seen.
#[test]
fn each_rule_has_programs_that_break_just_it() {
    for &(number, title, breaks) in RULES {
        let mut rule = Rule { number, seen: Vec::new() };
        for b in breaks {
            b(&mut rule);
        }
        assert!(!rule.seen.is_empty(), "nothing breaks rule {number}, {title}");
        for (i, &(message, rules)) in MESSAGES.iter().enumerate() {
            let seen = rule.seen.contains(&i);
            assert!(seen || !rules.contains(&number), "rule {number}, {title}: no program shows {message:?}");
        }
    }
}

#[test]
fn the_rules_are_those_of_the_checklist() {
    let listed = include_str!("../../../src/verify/mod.rs").lines().filter_map(|line| {
        let (number, rest) = line.strip_prefix("//! ")?.split_once(". *")?;
        Some((number.parse::<u32>().ok()?, rest.split_once(".*")?.0))
    });
    let listed: Vec<(u32, &str)> = listed.collect();
    let tested: Vec<(u32, &str)> = RULES.iter().map(|r| (r.0, r.1)).collect();
    assert_eq!(listed, tested);
}

#[test]
fn well_formed_programs_pass_and_say_their_form() {
    for text in [CHAIN, REGION, BRANCH, LAMBDA] {
        assert_fine(&parse(text), Form::Anf);
    }
    for text in [
        "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { negative(negative(%x)) }",
        "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { %a = negative(%x); add(%a, %a) }",
        "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %a = { let %b = negative(%x); %b }; %a }",
        "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { if (less(%x, %x)) { %x } else { %x } }",
    ] {
        assert_fine(&parse(text), Form::Graph);
    }
    let m = parse(&format!("{CHAIN} def @other(%x: Tensor[(8,), float32]) {{ negative(negative(%x)) }}"));
    let report = verify_module(&m).unwrap();
    let forms: Vec<Form> = report.functions.iter().map(|f| f.1).collect();
    assert_eq!([Form::Anf, Form::Graph].map(Form::name), ["ANF", "graph"]);
    assert_eq!((report.form(), forms), (Form::Graph, vec![Form::Anf, Form::Graph]));
    assert_eq!(verify_function(&m, m.find("main").unwrap()), Ok(Form::Anf));
}
