//! Types that state the elements of tensors.

use anfora_ir::{DType, DimId, MAX_KNOWN_ELEMENTS, Names, Types};

/// Returns types, a symbol and the constants from 0 to 4.
fn setup() -> (Types, DimId, [DimId; 5]) {
    let (mut t, mut names) = (Types::default(), Names::default());
    let n = t.dims.new_symbol(names.intern("n"));
    let n = t.dims.symbol(n);
    let numbers = [0, 1, 2, 3, 4].map(|c| t.dims.constant(c));
    (t, n, numbers)
}

#[test]
fn only_small_tensors_of_integers_and_bool_say_elements() {
    let (mut t, n, [zero, one, two, ..]) = setup();
    let unknown = t.dims.unknown();
    let pair = t.static_tensor(DType::Int64, &[2]);
    let known = t.with_elements(pair, &[n, two]);
    assert_eq!(t.elements(known), Some(&[n, two][..]));
    assert!(t.has_elements(known) && !t.has_elements(pair));
    assert_eq!(t.with_elements(known, &[unknown, unknown]), pair);
    assert_eq!(t.with_elements(pair, &[two]), pair);
    for (dtype, elements, kept) in [
        (DType::Int32, [n, two], Some([unknown, two])),
        (DType::Bool, [two, one], Some([unknown, one])),
        (DType::UInt64, [zero, one], Some([zero, one])),
        (DType::Float32, [zero, one], None),
    ] {
        let ty = t.static_tensor(dtype, &[2]);
        let with = t.with_elements(ty, &elements);
        assert_eq!(t.elements(with), kept.as_ref().map(|k| &k[..]), "{dtype}");
    }
    for (value, fits) in [(127, true), (128, false), (-128, true), (-129, false)] {
        let (ty, value) = (t.scalar(DType::Int8), t.dims.constant(value));
        assert_eq!(t.with_elements(ty, &[value]) != ty, fits);
    }
    let large = t.static_tensor(DType::Int64, &[MAX_KNOWN_ELEMENTS + 1]);
    assert_eq!(t.with_elements(large, &[one; MAX_KNOWN_ELEMENTS + 1]), large);
    let open = t.tensor(DType::Int64, &[n]);
    assert_eq!(t.with_elements(open, &[one]), open);
}

#[test]
fn a_type_with_elements_is_more_specific() {
    let (mut t, n, [_, one, two, ..]) = setup();
    let unknown = t.dims.unknown();
    let pair = t.static_tensor(DType::Int64, &[2]);
    let [a, b, half] = [[n, one], [n, two], [n, unknown]].map(|e| t.with_elements(pair, &e));
    assert!(t.accepts(pair, a) && t.accepts(half, a) && t.accepts(half, b));
    assert!(!t.accepts(a, pair) && !t.accepts(a, half) && !t.accepts(a, b));
    assert_eq!(t.join(a, b), Some(half));
    assert_eq!(t.join(a, pair), Some(pair));
    let (p, q) = (t.tuple(&[a, a]), t.tuple(&[b, pair]));
    let expected = t.tuple(&[half, pair]);
    assert_eq!(t.join(p, q), Some(expected));
    let plain = t.tuple(&[pair, pair]);
    assert_eq!(t.without_elements(p), plain);
}

#[test]
fn symbols_in_elements_are_replaced_and_bound() {
    let (mut t, n, [.., four]) = setup();
    let scalar = t.scalar(DType::Int64);
    let (known, number) = (t.with_elements(scalar, &[n]), t.with_elements(scalar, &[four]));
    let mut found = Vec::new();
    t.for_each_binding_symbol(known, |s| found.push(s));
    let &[s] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(t.substitute(known, |_| Some(four)), number);
    let shaped = t.tensor(DType::Float32, &[n]);
    let f = t.function(&[known], shaped, &[s]);
    let (params, ret) = t.instantiate(f, &[four]).unwrap();
    assert_eq!(params.as_slice(), &[number]);
    assert_eq!(t.static_shape(ret).unwrap().as_slice(), &[4]);
    let unknown = t.dims.unknown();
    assert_eq!(t.instantiate(f, &[unknown]).unwrap().0.as_slice(), &[scalar]);
}
