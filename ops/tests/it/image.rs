//! Values of the operators on images. They come from the ONNX documentation and its test cases, or
//! follow from the formulas.

use anfora_ir::{Attr, AttrId, AttrReader, Context, DType, KernelCall, Literal, infer_op};

/// Returns the result of a call on constants, or the error message.
fn call(op: &str, operands: &[Literal], attrs: &[(&str, Attribute)]) -> Result<Literal, String> {
    let mut cx = Context::new(anfora_ops::standard());
    let op = cx.ops.find(op).unwrap();
    let attrs: Vec<(&str, AttrId)> = attrs.iter().map(|(name, a)| (*name, a.intern(&mut cx))).collect();
    let attrs = cx.named_attrs(&attrs);
    let attrs = cx.check_op_attrs(op, attrs).map_err(|(e, _)| e.message)?;
    let list: Vec<_> = operands.iter().map(|l| cx.constant_operand(Some(l))).collect();
    let annotated = cx.types.error();
    let ty = infer_op(&mut cx, op, &list, attrs, annotated).map_err(|e| e.message)?;
    let refs: Vec<Option<&Literal>> = operands.iter().map(Some).collect();
    let call = KernelCall { operands: &refs, attrs: AttrReader { cx: &cx, op, attrs }, ty };
    let results = call.evaluate().map_err(|e| e.to_string())?;
    Ok(results.into_iter().next().expect("one result"))
}

enum Attribute {
    Word(&'static str),
    Float(f64),
    Yes,
    Axes(&'static [i64]),
}
use Attribute::*;

impl Attribute {
    fn intern(&self, cx: &mut Context) -> AttrId {
        match self {
            Word(w) => cx.str_attr(w),
            Float(f) => cx.float_attr(*f),
            Yes => cx.attr(Attr::Bool(true)),
            Axes(a) => cx.ints_attr(a),
        }
    }
}

fn floats(shape: &[usize], elements: &[f32]) -> Literal {
    Literal::from_elements(shape, elements).unwrap()
}

fn counted(shape: &[usize]) -> Literal {
    let n: usize = shape.iter().product();
    floats(shape, &(1..=n).map(|i| i as f32).collect::<Vec<_>>())
}

fn extents(list: &[i64]) -> Literal {
    Literal::from_elements(&[list.len()], list).unwrap()
}

fn scales(list: &[f32]) -> Literal {
    floats(&[list.len()], list)
}

#[track_caller]
fn check(op: &str, operands: &[Literal], attrs: &[(&str, Attribute)], shape: &[usize], expected: &[f32]) {
    let result = call(op, operands, attrs).unwrap();
    assert_eq!(result.shape(), shape);
    let found = result.elements::<f32>().unwrap();
    let near = |(f, e): (&f32, &f32)| (f - e).abs() <= 1e-5 * e.abs().max(1.0) || (f.is_nan() && e.is_nan());
    assert!(found.iter().zip(expected).all(near) && found.len() == expected.len(), "{found:?} instead of {expected:?}");
}

#[track_caller]
fn refused(op: &str, operands: &[Literal], attrs: &[(&str, Attribute)], why: &str) {
    assert_eq!(call(op, operands, attrs).unwrap_err(), why);
}

const PLACE: &str = "coordinate_transformation_mode";

#[test]
fn nearest_takes_the_element_that_the_rounding_says() {
    let line = |places: &[f32], scale: f32, rounding: &'static str| {
        let attrs = [("rounding_method", Word(rounding)), (PLACE, Word("asymmetric"))];
        check("image.resize", &[counted(&[4]), scales(&[scale])], &attrs, &[places.len()], places);
    };
    // The positions are 0, 0.5, 1, …, 3.5. Past the end, the last element is used.
    line(&[1., 1., 2., 2., 3., 3., 4., 4.], 2.0, "round_prefer_floor");
    line(&[1., 2., 2., 3., 3., 4., 4., 4.], 2.0, "round_prefer_ceil");
    line(&[1., 1., 2., 2., 3., 3., 4., 4.], 2.0, "floor");
    line(&[1., 2., 2., 3., 3., 4., 4., 4.], 2.0, "ceil");
    // The positions are 0, 1.25 and 2.5.
    line(&[1., 2., 3.], 0.8, "round_prefer_floor");
    let x = counted(&[1, 1, 2, 2]);
    let doubled = [1., 1., 1., 2., 2., 2., 1., 1., 1., 2., 2., 2., 3., 3., 3., 4., 4., 4., 3., 3., 3., 4., 4., 4.];
    check("image.resize", &[x, scales(&[1., 1., 2., 3.])], &[], &[1, 1, 4, 6], &doubled);
}

#[test]
fn nearest_moves_elements_of_any_type() {
    for dtype in DType::ALL.iter().filter(|d| d.has_kernels()) {
        let x = Literal::from_bytes(*dtype, &[2], (0..dtype.bits() / 4).map(|i| (i % 2) as u8).collect()).unwrap();
        let result = call("image.resize", &[x.clone(), extents(&[4])], &[]).unwrap();
        let size = dtype.bits() / 8;
        let (from, to) = (x.to_bytes(), result.to_bytes());
        let (a, b) = from.split_at(size);
        assert_eq!(to, [a, a, b, b].concat(), "{dtype}");
    }
}

#[test]
fn linear_by_every_rule_of_coordinates() {
    let x = || counted(&[1, 1, 2, 2]);
    let linear = |place: &'static str| vec![("method", Word("linear")), (PLACE, Word(place))];
    let up = [1., 1.25, 1.75, 2., 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3., 3.25, 3.75, 4.];
    check("image.resize", &[x(), scales(&[1., 1., 2., 2.])], &linear("half_pixel"), &[1, 1, 4, 4], &up);
    check("image.resize", &[x(), extents(&[1, 1, 4, 4])], &linear("pytorch_half_pixel"), &[1, 1, 4, 4], &up);
    let third = |n: i32| n as f32 / 3.0;
    let corners: Vec<f32> = (0..16).map(|i| 1.0 + third(i % 4) + third(i / 4 * 2)).collect();
    check("image.resize", &[x(), extents(&[1, 1, 4, 4])], &linear("align_corners"), &[1, 1, 4, 4], &corners);
    let line = || counted(&[4]);
    check("image.resize", &[line(), extents(&[2])], &linear("asymmetric"), &[2], &[1., 3.]);
    check("image.resize", &[line(), extents(&[2])], &linear("tf_half_pixel_for_nn"), &[2], &[2., 4.]);
    check("image.resize", &[line(), extents(&[1])], &linear("pytorch_half_pixel"), &[1], &[1.]);
    check("image.resize", &[line(), extents(&[1])], &linear("align_corners"), &[1], &[1.]);
    // The length is 2.4 before it is rounded.
    check("image.resize", &[line(), scales(&[0.6])], &linear("align_corners"), &[2], &[1., 1.0 + 3.0 / 1.4]);
    let offset = 2.0 * (1.0 - 2.0 / 2.4);
    let symmetric = [1.0 + offset + 0.5 / 0.6 - 0.5, 1.0 + offset + 1.5 / 0.6 - 0.5];
    check("image.resize", &[line(), scales(&[0.6])], &linear("half_pixel_symmetric"), &[2], &symmetric);
}

#[test]
fn cubic_weighs_four() {
    let cubic = || ("method", Word("cubic"));
    let line = || floats(&[4], &[0., 0., 1., 0.]);
    // The positions are 0, 0.5, …. At midpoints the weights are -3/32, 19/32, 19/32, -3/32.
    let half = [0., -0.09375, 0., 0.59375, 1., 0.59375 - 0.09375 * 0.0, 0., 0.];
    let result = call("image.resize", &[line(), scales(&[2.])], &[cubic(), (PLACE, Word("asymmetric"))]).unwrap();
    let found = result.elements::<f32>().unwrap();
    assert_eq!(found[..5], half[..5]);
    let keys = [cubic(), (PLACE, Word("asymmetric")), ("cubic_alpha", Float(-0.5))];
    let found = call("image.resize", &[line(), scales(&[2.])], &keys).unwrap();
    assert_eq!(found.elements::<f32>().unwrap()[1..4], [-0.0625, 0., 0.5625]);
    // The first of the four elements around 0.5 is outside. Without it, the weights of the others
    // are divided by 1 + 3/32.
    let keys = [cubic(), (PLACE, Word("asymmetric")), ("exclude_outside", Yes)];
    let found = call("image.resize", &[line(), scales(&[2.])], &keys).unwrap();
    assert!((found.elements::<f32>().unwrap()[1] + 0.09375 / 1.09375).abs() < 1e-6);
}

#[test]
fn antialias_counts_every_element() {
    let x = || floats(&[8], &[0., 0., 0., 0., 0., 0., 0., 16.]);
    let plain = [("method", Word("linear"))];
    check("image.resize", &[x(), extents(&[2])], &plain, &[2], &[0., 0.]);
    // The weights around 5.5 fall from 4/16 to 0 at a distance of 4.
    let spread = [("method", Word("linear")), ("antialias", Yes)];
    let result = call("image.resize", &[x(), extents(&[2])], &spread).unwrap();
    let found = result.elements::<f32>().unwrap();
    // The border element replaces the elements outside, up to a distance of 4. The weights at 7, 8
    // and 9 are 2.5, 1.5 and 0.5 of 16.
    assert_eq!(&found[..], [0., 4.5]);
    let excluded = [("method", Word("linear")), ("antialias", Yes), ("exclude_outside", Yes)];
    let found = call("image.resize", &[x(), extents(&[2])], &excluded).unwrap();
    assert!((found.elements::<f32>().unwrap()[1] - 16.0 * 2.5 / 14.0).abs() < 1e-5);
    // Spreading changes nothing where the axis grows.
    let grown = |attrs: &[(&str, Attribute)]| call("image.resize", &[x(), extents(&[11])], attrs).unwrap();
    assert_eq!(grown(&spread), grown(&plain));
}

#[test]
fn sizes_keep_the_aspect_ratio_if_they_should() {
    let shape = |policy: &'static str, size: &[i64]| {
        let attrs = [("keep_aspect_ratio_policy", Word(policy)), ("axes", Axes(&[1, 2]))];
        call("image.resize", &[counted(&[1, 2, 4]), extents(size)], &attrs).unwrap().shape().to_vec()
    };
    assert_eq!(shape("stretch", &[7, 8]), [1, 7, 8]);
    assert_eq!(shape("not_larger", &[7, 8]), [1, 4, 8]);
    assert_eq!(shape("not_smaller", &[7, 8]), [1, 7, 14]);
    assert_eq!(shape("not_larger", &[3, 5]), [1, 3, 5], "2.5 is rounded up");
    assert_eq!(shape("not_larger", &[0, 5]), [1, 0, 0]);
}

#[test]
fn a_region_is_resized() {
    let x = || counted(&[1, 1, 4, 4]);
    let roi = floats(&[8], &[0., 0., 0.4, 0.6, 1., 1., 0.6, 0.8]);
    let linear = || ("method", Word("linear"));
    let expected = [7.6, 7.9, 8.2, 8.8, 9.1, 9.4, 10., 10.3, 10.6];
    check("image.crop_and_resize", &[x(), extents(&[1, 1, 3, 3]), roi], &[linear()], &[1, 1, 3, 3], &expected);
    let line = |start: f32, end: f32, m: i64| [counted(&[5]), extents(&[m]), floats(&[2], &[start, end])];
    let outside = || [linear(), ("extrapolation_value", Float(10.0))];
    check("image.crop_and_resize", &line(0.5, 1.5, 3), &outside(), &[3], &[3., 5., 10.]);
    check("image.crop_and_resize", &line(1.0, 0.0, 3), &outside(), &[3], &[5., 3., 1.]);
    check("image.crop_and_resize", &line(0.5, 1.0, 1), &outside(), &[1], &[4.]);
    check("image.crop_and_resize", &line(f32::NAN, f32::INFINITY, 2), &outside(), &[2], &[10., 10.]);
    let splat = [floats(&[5], &[2.; 5]), extents(&[3]), floats(&[2], &[0.5, 1.5])];
    check("image.crop_and_resize", &splat, &outside(), &[3], &[2., 2., 10.]);
    let huge = Literal::splat_bytes(DType::Float32, &[1 << 62], &2f32.to_le_bytes());
    let spread = [linear(), ("antialias", Yes), ("extrapolation_value", Float(10.0))];
    let operands = [huge, extents(&[3]), floats(&[2], &[0.5, 1.5])];
    check("image.crop_and_resize", &operands, &spread, &[3], &[2., 2., 10.]);
    let wrong = [counted(&[5]), extents(&[3]), floats(&[3], &[0.; 3])];
    refused("image.crop_and_resize", &wrong, &[], "a region of 3 entries for 1 axes");
}

#[test]
fn equal_neighbours_stay_what_they_are() {
    let x = floats(&[2, 3], &[0.1, 0.1, 0.1, 0.1, 0.1, f32::INFINITY]);
    for method in ["linear", "cubic"] {
        let attrs = [("method", Word(method)), ("axes", Axes(&[1]))];
        let result = call("image.resize", &[x.clone(), extents(&[7])], &attrs).unwrap();
        assert!(result.elements::<f32>().unwrap()[..7].iter().all(|&e| e == 0.1), "{method}");
    }
    // An element without weight does not contribute, even if it is infinite.
    let attrs = [("method", Word("linear")), ("axes", Axes(&[1])), (PLACE, Word("align_corners"))];
    let result = call("image.resize", &[x, extents(&[5])], &attrs).unwrap();
    assert_eq!(result.elements::<f32>().unwrap()[5..8], [0.1; 3]);
}

#[test]
fn empty_and_splat() {
    let none = floats(&[0, 3], &[]);
    assert_eq!(call("image.resize", &[none.clone(), scales(&[2., 2.])], &[]).unwrap().shape(), [0, 6]);
    let message = "there is nothing in (0, 3) that could be resized to (1, 3)";
    refused("image.resize", &[none, extents(&[1, 3])], &[], message);
    let huge = Literal::splat_bytes(DType::Float32, &[1 << 40, 2], &1f32.to_le_bytes());
    let result = call("image.resize", &[huge, scales(&[0.5, 3.0])], &[("method", Word("cubic"))]).unwrap();
    assert_eq!((result.shape(), result.as_splat().is_some()), (&[1 << 39, 6][..], true));
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = || counted(&[2, 2]);
    refused("image.resize", &[x(), extents(&[3])], &[], "operand 1 has 1 entries for 2 axes");
    refused("image.resize", &[x(), extents(&[3, -1])], &[], "extent -1 is negative");
    refused("image.resize", &[x(), scales(&[1.0, 0.0])], &[], "scale 0 is not positive and finite");
    refused("image.resize", &[x(), scales(&[1.0, 1e38])], &[], "the result is too large");
    refused("image.resize", &[x(), extents(&[2, 2])], &[("method", Word("x"))], "attribute `method` is \"x\"");
    let why = "`exclude_outside` and `antialias` go with the methods \"linear\" and \"cubic\"";
    refused("image.resize", &[x(), extents(&[2, 2])], &[("antialias", Yes)], why);
    refused("image.resize", &[x(), extents(&[2, 2])], &[("axes", Axes(&[0, -2]))], "axis -2 is named twice");
    let words = "operand 0 has elements of int64, but floats are expected";
    refused("image.resize", &[extents(&[2]), extents(&[2])], &[("method", Word("linear"))], words);
}
