//! Tests of all rows of the registry: every row is documented, and every kernel agrees with its
//! type rule on generated operands of every element type, dense or splat.

use std::collections::BTreeSet;

use anfora_ir::{
    Attr, AttrId, AttrReader, AttrsId, Context, DType, Element as Stored, FusionPattern, KernelCall, KernelError,
    Literal, OpDef, OpId, OpPurity, Operand, PrecisionPolicy, Type, TypeError, TypeId, element_count, infer_op,
};
use half::{bf16, f16};

use crate::cases::{A, Case, O, cases};

/// A generator of small numbers, which depend only on the seed.
struct Numbers(fastrand::Rng);

impl Numbers {
    fn of_seed(seed: u64) -> Numbers {
        Numbers(fastrand::Rng::with_seed(seed))
    }

    fn literal(&mut self, dtype: DType, shape: &[usize], positive: bool, splat: bool) -> Literal {
        let n = element_count(shape).unwrap();
        let mut one = || self.0.i64(if positive { 1..5 } else { -4..5 });
        let first = one();
        let values: Vec<i64> = (0..n).map(|_| if splat { first } else { one() }).collect();
        fn make<T: Stored>(shape: &[usize], values: &[i64], f: impl Fn(i64) -> T) -> Literal {
            Literal::from_elements(shape, &values.iter().map(|&v| f(v)).collect::<Vec<T>>()).unwrap()
        }
        match dtype {
            DType::Bool => make(shape, &values, |v| v > 0),
            DType::Int8 => make(shape, &values, |v| v as i8),
            DType::Int16 => make(shape, &values, |v| v as i16),
            DType::Int32 => make(shape, &values, |v| v as i32),
            DType::Int64 => make(shape, &values, |v| v),
            DType::UInt8 => make(shape, &values, |v| v.unsigned_abs() as u8),
            DType::UInt16 => make(shape, &values, |v| v.unsigned_abs() as u16),
            DType::UInt32 => make(shape, &values, |v| v.unsigned_abs() as u32),
            DType::UInt64 => make(shape, &values, |v| v.unsigned_abs()),
            DType::Float16 => make(shape, &values, |v| f16::from_f32(v as f32 * 0.3)),
            DType::BFloat16 => make(shape, &values, |v| bf16::from_f32(v as f32 * 0.3)),
            DType::Float32 => make(shape, &values, |v| v as f32 * 0.3),
            _ => make(shape, &values, |v| v as f64 * 0.3),
        }
    }
}

fn operand(o: &O, dtype: DType, splat: bool, numbers: &mut Numbers) -> Option<Literal> {
    Some(match o {
        O::X(shape) => numbers.literal(dtype, shape, false, splat),
        O::Positive(shape) => numbers.literal(dtype, shape, true, splat),
        O::Of(dtype, shape) => numbers.literal(*dtype, shape, dtype.is_float(), splat),
        O::Flags(shape) => numbers.literal(DType::Bool, shape, false, splat),
        O::Int64(shape, values) => Literal::from_elements(shape, values).unwrap(),
        O::Float32(values) => Literal::from_elements(&[values.len()], values).unwrap(),
        O::Scalar(v) => {
            let wide = Literal::scalar(*v);
            let mut cx = Context::new(anfora_ops::standard());
            let to = cx.attr(Attr::DType(dtype));
            run(&mut cx, "astype", &[Some(wide)], &[("dtype", to)]).unwrap().1.remove(0)
        }
        O::Absent => return None,
    })
}

fn attribute(cx: &mut Context, a: &A, dtype: DType, numbers: &mut Numbers) -> AttrId {
    match a {
        A::Int(i) => cx.int_attr(*i),
        A::Ints(i) => cx.ints_attr(i),
        A::Float(f) => cx.float_attr(*f),
        A::Bool(b) => cx.attr(Attr::Bool(*b)),
        A::Str(s) => cx.str_attr(s),
        A::Element(d) => cx.attr(Attr::DType(*d)),
        A::Shape(s) => {
            let dims = s.iter().map(|&d| cx.types.dims.constant(d)).collect();
            cx.attr(Attr::Shape(dims))
        }
        A::Value => {
            let value = numbers.literal(dtype, &[1], false, true);
            let id = cx.literals.intern(value);
            cx.attr(Attr::Literal(id))
        }
    }
}

/// Returns the type of a call.
fn infer(cx: &mut Context, op: OpId, operands: &[Operand], attrs: AttrsId) -> Result<TypeId, TypeError> {
    let annotated = cx.types.error();
    infer_op(cx, op, operands, attrs, annotated)
}

fn literal_operands(cx: &mut Context, operands: &[Option<Literal>]) -> Vec<Operand> {
    operands.iter().map(|o| cx.constant_operand(o.as_ref())).collect()
}

/// Infers the type of a call on constants and evaluates it.
pub(crate) fn run(
    cx: &mut Context,
    op: &str,
    operands: &[Option<Literal>],
    attrs: &[(&str, AttrId)],
) -> Result<(TypeId, Vec<Literal>), String> {
    let op = cx.ops.find(op).unwrap();
    let attrs = cx.named_attrs(attrs);
    let attrs = cx.check_op_attrs(op, attrs).map_err(|(e, _)| e.to_string())?;
    let list = literal_operands(cx, operands);
    let ty = infer(cx, op, &list, attrs).map_err(|e| e.to_string())?;
    let refs: Vec<Option<&Literal>> = operands.iter().map(|o| o.as_ref()).collect();
    let kernel = cx.ops.get(op).kernel.unwrap();
    let call = KernelCall { operands: &refs, attrs: AttrReader { cx, op, attrs }, ty };
    kernel(&call).map(|r| (ty, r)).map_err(|e: KernelError| format!("{ty:?}: {e}"))
}

/// Returns the types of the fields of a call's result.
fn result_types(cx: &Context, ty: TypeId) -> Vec<TypeId> {
    match cx.types.get(ty) {
        Type::Tuple(fields) => fields.to_vec(),
        _ => vec![ty],
    }
}

/// Returns the rows `0..n` along axis 0.
fn first_rows(cx: &mut Context, l: &Literal, n: usize) -> Literal {
    let (begin, end) = (cx.ints_attr(&[0]), cx.ints_attr(&[n as i64]));
    run(cx, "strided_slice", &[Some(l.clone())], &[("begin", begin), ("end", end)]).unwrap().1.remove(0)
}

#[test]
fn every_row_says_what_it_is() {
    let registry = anfora_ops::standard();
    let mut names = BTreeSet::new();
    for (_, row) in registry.rows() {
        let name = row.name.as_ref();
        assert!(names.insert(name.to_string()), "{name} twice");
        assert!(!row.doc.is_empty() && !row.doc.ends_with('.'), "{name}: {}", row.doc);
        for a in row.attrs.iter() {
            assert!(!a.doc.is_empty() && !a.doc.ends_with('.'), "{name}.{}: {}", a.name, a.doc);
        }
        if row.commutative {
            assert_eq!((row.arity.min, row.arity.max), (2, Some(2)), "{name}");
        }
        if row.purity == OpPurity::Impure {
            assert!(row.kernel.is_none() && row.fusion == FusionPattern::Opaque, "{name}");
        }
        let has_cases = cases(name).is_some();
        assert_eq!(has_cases, row.kernel.is_some(), "{name} has a kernel and no case here, or the other way round");
    }
}

#[test]
fn the_page_of_operators_names_them_all() {
    let page = include_str!("../../OPS.md");
    for (_, row) in anfora_ops::standard().rows() {
        let name = row.name.replace("1d", "Nd").replace("2d", "Nd").replace("3d", "Nd");
        assert!(page.contains(&format!("`{name}")) || page.contains(&format!("`{}(", row.name)), "{name}");
        for a in row.attrs.iter() {
            assert!(page.contains(a.name), "{name}: {}", a.name);
        }
    }
}

#[test]
fn kernels_agree_with_type_rules() {
    let registry = anfora_ops::standard();
    let mut bits = String::new();
    for (op, row) in registry.rows() {
        let name = row.name.as_ref();
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        for (number, case) in cases(name).into_iter().flatten().enumerate() {
            let mut accepted = 0;
            for &dtype in DType::ALL.iter().filter(|d| d.has_kernels()) {
                for splats in [0, u32::MAX, 1, 2] {
                    let place = format!("{name}, case {number}, {dtype}, splats {splats:b}");
                    let mut cx = Context::new(registry.clone());
                    let Some(call) = Call::typed(&mut cx, op, &case, number, dtype, splats) else { continue };
                    accepted += 1;
                    let (ty, results) =
                        run(&mut cx, name, &call.operands, &call.attrs).unwrap_or_else(|e| panic!("{place}: {e}"));
                    for result in &results {
                        hash.add(result.dtype().name().as_bytes());
                        hash.add(&result.to_bytes());
                    }
                    let exact = check_result_types(&mut cx, &place, row, ty, &results);
                    check_types_of_vaguer_operands(&mut cx, &place, op, &call, ty, &exact);
                    if row.relabels {
                        let elements = |x: &Literal| (x.dtype(), x.to_bytes().to_vec());
                        let first = call.operands[0].as_ref().expect("the operand is given");
                        assert_eq!(elements(&results[0]), elements(first), "{place}");
                    }
                    if !case.rows.is_empty() {
                        splat_and_rows_agree(&mut cx, &place, name, &case, &call.operands, &call.attrs, &results);
                    }
                }
            }
            assert!(accepted > 0, "{name}, case {number}");
        }
        if row.kernel.is_some() {
            bits += &format!("{name} {:016x}\n", hash.0);
        }
    }
    // The bits of every result, to detect a machine that computes other bits.
    expect_test::expect_file!["bits.txt"].assert_eq(&bits);
}

/// An operator that ToMixedPrecision computes in 16 bits accepts such operands, and its results
/// have 16 bits where they have `float32` otherwise.
#[test]
fn policies_say_which_operators_take_16_bits() {
    let registry = anfora_ops::standard();
    let mut checked = 0;
    for (op, row) in registry.rows().filter(|(_, row)| row.precision != PrecisionPolicy::Never) {
        for (number, case) in cases(&row.name).into_iter().flatten().enumerate() {
            let mut cx = Context::new(registry.clone());
            let mut types = |dtype| {
                let call = Call::typed(&mut cx, op, &case, number, dtype, 0)?;
                let ty = infer(&mut cx, op, &call.list, call.attrs_id).expect("it is typed");
                Some(
                    result_types(&cx, ty)
                        .into_iter()
                        .map(|ty| cx.types.as_tensor(ty).unwrap().dtype)
                        .collect::<Vec<_>>(),
                )
            };
            let Some(wide) = types(DType::Float32) else { continue };
            for low in [DType::Float16, DType::BFloat16] {
                let narrow = types(low).unwrap_or_else(|| panic!("{}, case {number} does not take {low}", row.name));
                let pairs = wide.iter().zip(&narrow);
                // A case may state the element type of the result.
                let fits =
                    |(&wide, &narrow): (&DType, &DType)| narrow == if wide == DType::Float32 { low } else { wide };
                assert!(pairs.clone().all(fits) || row.name == "astype", "{}, case {number}: {narrow:?}", row.name);
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked} calls");
}

/// A call on constants.
pub(crate) struct Call {
    pub(crate) operands: Vec<Option<Literal>>,
    /// The operands, as inference takes them.
    list: Vec<Operand>,
    pub(crate) attrs: Vec<(&'static str, AttrId)>,
    attrs_id: AttrsId,
}

impl Call {
    /// Returns a call of the case with this number. Bit `i` of `splats` is set if operand `i` is a
    /// splat. Returns `None` if the operator does not take the element type.
    pub(crate) fn typed(
        cx: &mut Context,
        op: OpId,
        case: &Case,
        number: usize,
        dtype: DType,
        splats: u32,
    ) -> Option<Call> {
        let mut numbers = Numbers::of_seed(number as u64 + 1);
        let operands: Vec<Option<Literal>> = case
            .operands
            .iter()
            .enumerate()
            .map(|(i, o)| operand(o, dtype, splats >> i & 1 == 1, &mut numbers))
            .collect();
        let attrs: Vec<(&str, AttrId)> =
            case.attrs.iter().map(|(k, a)| (*k, attribute(cx, a, dtype, &mut numbers))).collect();
        let attrs_id = cx.named_attrs(&attrs);
        let attrs_id = cx.check_op_attrs(op, attrs_id).unwrap();
        let list = literal_operands(cx, &operands);
        infer(cx, op, &list, attrs_id).ok().map(|_| Call { operands, list, attrs, attrs_id })
    }
}

/// Checks the types of results against the type of a call. Returns their types with the elements.
fn check_result_types(cx: &mut Context, place: &str, row: &OpDef, ty: TypeId, results: &[Literal]) -> Vec<TypeId> {
    let types = result_types(cx, ty);
    assert_eq!(types.len(), results.len(), "{place}");
    let actual: Vec<TypeId> = results.iter().map(|r| cx.types.static_tensor(r.dtype(), r.shape())).collect();
    // The elements that the type states are correct.
    let mut exact: Vec<TypeId> = Vec::new();
    for (&ty, result) in types.iter().zip(results) {
        let literal = cx.literals.intern(result.clone());
        exact.push(cx.literal_type(literal));
        assert!(cx.types.accepts(ty, exact[exact.len() - 1]), "{place}: {} {result:?}", cx.type_text(ty));
    }
    let types: Vec<TypeId> = types.iter().map(|&t| cx.types.without_elements(t)).collect();
    match row.size_bound {
        None => assert_eq!(types, actual, "{place}: {} {results:?}", cx.type_text(ty)),
        Some(_) => {
            let all = types.iter().zip(&actual).all(|(&t, &a)| cx.types.accepts(t, a));
            assert!(all, "{place}: {} {results:?}", cx.type_text(ty));
        }
    }
    exact
}

/// Checks that the type of a call is still correct if less is known of its operands. The call has
/// the type `ty`, and its results have the types `exact`.
fn check_types_of_vaguer_operands(cx: &mut Context, place: &str, op: OpId, call: &Call, ty: TypeId, exact: &[TypeId]) {
    for vaguer in [0, 1, 2] {
        let mut vague = call.list.clone();
        for o in &mut vague {
            let Some(t) = cx.types.as_tensor(o.ty).cloned() else { continue };
            o.literal = o.literal.filter(|_| vaguer == 0);
            let unknown = cx.types.dims.unknown();
            o.ty = match vaguer {
                0 => o.ty,
                1 => cx.types.tensor(t.dtype, &vec![unknown; t.shape.unwrap_or_default().len()]),
                _ => cx.types.unranked(t.dtype),
            };
        }
        let general = infer(cx, op, &vague, call.attrs_id).unwrap_or_else(|e| panic!("{place}: {e}"));
        let specific = if matches!(cx.types.get(ty), Type::Tuple(_)) { cx.types.tuple(exact) } else { exact[0] };
        let (g, s) = (cx.type_text(general), cx.type_text(specific));
        assert!(cx.types.accepts(general, specific), "{place}: {g} {s}");
    }
}

#[test]
fn extents_depend_on_no_elements_but_those_of_the_shape_operands() {
    let registry = anfora_ops::standard();
    let mut checked = 0;
    for (op, row) in registry.rows().filter(|(_, row)| row.fusion != FusionPattern::Opaque) {
        let name = row.name.as_ref();
        let mut depends = false;
        for (number, case) in cases(name).into_iter().flatten().enumerate() {
            for &dtype in DType::ALL.iter().filter(|d| d.has_kernels()) {
                let mut cx = Context::new(registry.clone());
                let mut numbers = Numbers::of_seed(number as u64 + 1);
                let operands: Vec<Option<Literal>> =
                    case.operands.iter().map(|o| operand(o, dtype, false, &mut numbers)).collect();
                let attrs: Vec<(&str, AttrId)> =
                    case.attrs.iter().map(|(k, a)| (*k, attribute(&mut cx, a, dtype, &mut numbers))).collect();
                let attrs = cx.named_attrs(&attrs);
                let attrs = cx.check_op_attrs(op, attrs).unwrap();
                let list = literal_operands(&mut cx, &operands);
                let Ok(known) = infer(&mut cx, op, &list, attrs) else { continue };
                let known = cx.types.without_elements(known);
                let mut with_only = |keeps: &[u32]| {
                    let mut list = list.clone();
                    for (i, o) in list.iter_mut().enumerate() {
                        if !keeps.contains(&(i as u32)) {
                            (o.ty, o.literal) = (cx.types.without_elements(o.ty), None);
                        }
                    }
                    let ty = infer(&mut cx, op, &list, attrs).unwrap();
                    cx.types.without_elements(ty)
                };
                assert_eq!(with_only(row.shape_operands), known, "{name}, case {number}, {dtype}");
                depends |= with_only(&[]) != known;
                checked += 1;
            }
        }
        assert_eq!(depends, !row.shape_operands.is_empty(), "{name}");
    }
    assert!(checked > 100, "only {checked}");
}

/// The Fowler-Noll-Vo hash.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Checks that further rows with other numbers, which make operands dense, do not change the first
/// rows of the result.
fn splat_and_rows_agree(
    cx: &mut Context,
    place: &str,
    name: &str,
    case: &Case,
    operands: &[Option<Literal>],
    attrs: &[(&str, AttrId)],
    results: &[Literal],
) {
    let mut numbers = Numbers::of_seed(99);
    let longer: Vec<Option<Literal>> = operands
        .iter()
        .enumerate()
        .map(|(i, o)| {
            let o = o.as_ref()?;
            if !case.rows.contains(&i) {
                return Some(o.clone());
            }
            let more = numbers.literal(o.dtype(), o.shape(), true, false);
            let axis = cx.int_attr(0);
            Some(run(cx, "concat", &[Some(o.clone()), Some(more)], &[("axis", axis)]).unwrap().1.remove(0))
        })
        .collect();
    let (_, long) = run(cx, name, &longer, attrs).unwrap_or_else(|e| panic!("{place}: {e}"));
    for (short, long) in results.iter().zip(&long) {
        if short.rank() > 0 && short.shape() != long.shape() {
            assert_eq!(&first_rows(cx, long, short.shape()[0]), short, "{place}");
        }
    }
}

#[test]
fn symbolic_dimensions() {
    let mut cx = Context::new(anfora_ops::standard());
    let (n, m) = (cx.names.intern("n"), cx.names.intern("m"));
    let (n, m) = (cx.types.dims.new_symbol(n), cx.types.dims.new_symbol(m));
    let (n, m) = (cx.types.dims.symbol(n), cx.types.dims.symbol(m));
    let c = |cx: &mut Context, v| cx.types.dims.constant(v);
    let (one, three, four) = (c(&mut cx, 1), c(&mut cx, 3), c(&mut cx, 4));
    let unknown = cx.types.dims.unknown();
    let mut check = |op: &str, operands: &[&[anfora_ir::DimId]], attrs: &[(&str, A)], wanted: &str| {
        let id = cx.ops.find(op).unwrap();
        let attrs: Vec<_> =
            attrs.iter().map(|(k, a)| (*k, attribute(&mut cx, a, DType::Float32, &mut Numbers::of_seed(1)))).collect();
        let attrs = cx.named_attrs(&attrs);
        let attrs = cx.check_op_attrs(id, attrs).unwrap();
        let operands: Vec<Operand> = operands
            .iter()
            .map(|s| Operand { ty: cx.types.tensor(DType::Float32, s), literal: None, absent: false })
            .collect();
        let text = match infer(&mut cx, id, &operands, attrs) {
            Ok(ty) => cx.type_text(ty).to_string(),
            Err(e) => e.message,
        };
        assert_eq!(text, wanted, "{op}");
    };
    check("add", &[&[n, m], &[n, m]], &[], "Tensor[(n, m), float32]");
    check("add", &[&[n, three], &[n, one]], &[], "Tensor[(n, 3), float32]");
    check("add", &[&[n], &[m]], &[], "Tensor[(?), float32]".replace("(?)", "(?,)").as_str());
    check("add", &[&[n], &[three]], &[], "Tensor[(3,), float32]");
    check(
        "add",
        &[&[n, four], &[three]],
        &[],
        "axis 0 of operand 1 has extent 3, which does not broadcast with 4 of operand 0",
    );
    check("matmul", &[&[n, three], &[three, m]], &[], "Tensor[(n, m), float32]");
    check("matmul", &[&[n, three], &[four, m]], &[], "the summed extent of operand 1 is 4, but 3 is expected");
    let batch = [("subscripts", A::Str("bij,bjk->bik"))];
    check("einsum", &[&[n, m, three], &[n, three, four]], &batch, "Tensor[(n, m, 4), float32]");
    check("einsum", &[&[n, m, three], &[one, one, four]], &batch, "Tensor[(n, m, 4), float32]");
    check("einsum", &[&[n, m, m], &[m, three, four]], &batch, "Tensor[(?, m, 4), float32]");
    check(
        "einsum",
        &[&[n, m, three], &[n, four, m]],
        &batch,
        "an extent of one name of operand 1 is 4, but 3 is expected",
    );
    check("concat", &[&[n, three], &[m, three]], &[], "Tensor[(n + m, 3), float32]");
    check("concat", &[&[n, n], &[m, m]], &[("axis", A::Int(1))], "Tensor[(n, n + m), float32]");
    check(
        "split",
        &[&[n, four]],
        &[("axis", A::Int(1)), ("sections", A::Int(2))],
        "(Tensor[(n, 2), float32], Tensor[(n, 2), float32])",
    );
    check("sum", &[&[n, three, m]], &[("axis", A::Ints(&[1]))], "Tensor[(n, m), float32]");
    check(
        "nn.conv2d",
        &[&[n, three, m, m], &[four, three, three, three]],
        &[("padding", A::Ints(&[1, 1, 1, 1])), ("strides", A::Ints(&[1, 2]))],
        "Tensor[(n, 4, m, floordiv(m - 1, 2) + 1), float32]",
    );
    check("nn.max_pool1d", &[&[n, three, unknown]], &[("pool_size", A::Ints(&[2]))], "Tensor[(n, 3, ?), float32]");
    let (size, ceil) = (("pool_size", A::Ints(&[4])), ("ceil_mode", A::Bool(true)));
    let by_two = ("strides", A::Ints(&[2]));
    check("nn.max_pool1d", &[&[n, m, three]], std::slice::from_ref(&size), "Tensor[(n, m, 0), float32]");
    check("nn.max_pool1d", &[&[n, m, three]], &[size.clone(), by_two.clone(), ceil], "Tensor[(n, m, 1), float32]");
    check(
        "nn.max_pool1d",
        &[&[n, m, one]],
        &[size, by_two],
        "a window of 4 does not fit in 1, the padded extent of spatial axis 0",
    );
    check("squeeze", &[&[n, one]], &[], "Tensor[?, float32]");
    check(
        "strided_slice",
        &[&[n, four]],
        &[("begin", A::Ints(&[0, 1])), ("end", A::Ints(&[i64::MAX, 3]))],
        "Tensor[(n, 2), float32]",
    );
}

#[test]
fn reshape_cancels_symbols() {
    let mut cx = Context::new(anfora_ops::standard());
    let name = cx.names.intern("n");
    let n = cx.types.dims.new_symbol(name);
    let n = cx.types.dims.symbol(n);
    let dims: Vec<_> = [1, 3, 4].into_iter().map(|d| cx.types.dims.constant(d)).collect();
    let x = cx.types.tensor(DType::Float32, &[n, dims[1], dims[2]]);
    let op = cx.ops.find("reshape").unwrap();
    let attrs = cx.attrs.empty();
    for (shape, wanted) in [
        (&[0i64, -1][..], "Tensor[(n, 12), float32]"),
        (&[-1, 6], "Tensor[(2 * n, 6), float32]"),
        (&[-1], "Tensor[(12 * n,), float32]"),
        (&[-1, 5], "Tensor[(?, 5), float32]"),
        (&[0, 5], "Tensor[(n, 5), float32]"),
        (&[0, -1, 5], "a tensor of shape (n, 3, 4) does not fit the shape (n, ?, 5)"),
    ] {
        let shape = cx.constant_operand(Some(&Literal::from_elements(&[shape.len()], shape).unwrap()));
        let x = Operand { ty: x, literal: None, absent: false };
        let found = infer(&mut cx, op, &[x, shape], attrs).map(|ty| cx.type_text(ty).to_string());
        assert_eq!(found.unwrap_or_else(|e| e.message), wanted);
    }
}
