//! Names that end in numbers are stored by base and number.

use anfora_ir::{NameId, Names};

/// Interns names in an order, and checks that each has one id and is found again.
fn check(order: &[&str]) {
    let mut names = Names::default();
    let ids: Vec<NameId> = order.iter().map(|name| names.intern(name)).collect();
    for (name, id) in order.iter().zip(ids) {
        assert_eq!((names.find(name), names.intern(name), names.get(id)), (Some(id), id, *name));
    }
    assert_eq!(names.len(), order.iter().collect::<std::collections::BTreeSet<_>>().len());
    assert_eq!(names.find("none"), None);
}

#[test]
fn numbered_names_are_found_in_any_order() {
    check(&["x1", "x0", "x01", "x", "x00", "1", "01", "x1", "y1", "x999999999", "x1000000000", "x4", "x64", "x65"]);
    check(&["x999999999", "x1", "x2", "x999999999", "x3", "x70", "x71"]);
    check(&["long_base1", "long_ba1", "long_bas1", "a\0b1", "a\u{e9}7", "a4294967295", "a4294967296", ""]);
    let many: Vec<String> =
        (0..300).flat_map(|n| [format!("a{n}"), format!("b{n}_{n}"), format!("c{}", n * n)]).collect();
    check(&many.iter().map(String::as_str).collect::<Vec<_>>());
    check(&many.iter().rev().map(String::as_str).collect::<Vec<_>>());
    let bases: Vec<String> = (0..400).map(|n| format!("{}_{}", n % 100, n)).collect();
    check(&bases.iter().map(String::as_str).collect::<Vec<_>>());
}
