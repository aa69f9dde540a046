//! Function types, the order of types by what they accept, and deep types.

use anfora_ir::{DType, DimId, Names, SymbolId, Types};

fn symbol(types: &mut Types, name: &str) -> (SymbolId, DimId) {
    let mut names = Names::default();
    let s = types.dims.new_symbol(names.intern(name));
    (s, types.dims.symbol(s))
}

#[test]
fn function_types_that_differ_in_names_are_one() {
    let mut t = Types::default();
    let ((n, dn), (m, dm)) = (symbol(&mut t, "n"), symbol(&mut t, "m"));
    let (a, b) = (t.tensor(DType::Float32, &[dn]), t.tensor(DType::Float32, &[dm]));
    assert_ne!(a, b);
    let f = t.function(&[a], a, &[n]);
    let g = t.function(&[b], b, &[m]);
    assert_eq!(f, g);
    let free = t.function(&[a], a, &[]);
    assert_ne!(f, free);
    let eight = t.dims.constant(8);
    let (params, ret) = t.instantiate(f, &[eight]).unwrap();
    assert_eq!(params[0], ret);
    assert_eq!(t.static_shape(ret).unwrap().as_slice(), &[8]);
}

#[test]
fn a_nested_function_type_names_the_outer_symbol() {
    let mut t = Types::default();
    let (n, dn) = symbol(&mut t, "n");
    let a = t.tensor(DType::Float32, &[dn]);
    let unit = t.unit();
    let inner = t.function(&[a], unit, &[]);
    let outer = t.function(&[a, inner], unit, &[n]);
    let eight = t.dims.constant(8);
    let (params, _) = t.instantiate(outer, &[eight]).unwrap();
    let inner = t.as_function(params[1]).unwrap().params[0];
    assert_eq!(inner, params[0]);
}

#[test]
fn less_specific_types_accept_more() {
    let mut t = Types::default();
    let (_, n) = symbol(&mut t, "n");
    let unknown = t.dims.unknown();
    let fixed = t.static_tensor(DType::Float32, &[8]);
    let named = t.tensor(DType::Float32, &[n]);
    let open = t.tensor(DType::Float32, &[unknown]);
    let rank = t.unranked(DType::Float32);
    assert!(t.accepts(open, fixed) && t.accepts(open, named) && t.accepts(rank, open));
    assert!(!t.accepts(fixed, open) && !t.accepts(named, fixed) && !t.accepts(open, rank));
    assert_eq!(t.join(fixed, named), Some(open));
    let (p, q) = (t.tuple(&[fixed, rank]), t.tuple(&[named, open]));
    let expected = t.tuple(&[open, rank]);
    assert_eq!(t.join(p, q), Some(expected));
    let int = t.static_tensor(DType::Int32, &[8]);
    assert_eq!(t.join(fixed, int), None);
    let any = t.any();
    assert_eq!(t.join(fixed, any), Some(any));
}

#[test]
fn deep_types_need_no_stack() {
    let mut t = Types::default();
    let ((n, dn), (_, dm)) = (symbol(&mut t, "n"), symbol(&mut t, "m"));
    let (mut a, mut b) = (t.tensor(DType::Float32, &[dn]), t.tensor(DType::Float32, &[dm]));
    let (s, u) = (a, b);
    for _ in 0..100_000 {
        a = t.tuple(&[a, s]);
        b = t.tuple(&[b, u]);
    }
    assert!(!t.accepts(a, b));
    assert_eq!(t.substitute(a, |s| (s == n).then_some(dm)), b);
    assert!(t.join(a, b).is_some());
}
