//! Operands for the tests of kernels, and checks of results.

use anfora_ir::{Literal, element_count};

/// Returns a tensor of 0, 1, 2 and so on, in row-major order.
pub(super) fn counting(shape: &[usize]) -> Literal {
    let n = element_count(shape).expect("a small shape");
    Literal::from_elements(shape, &(0..n as i32).collect::<Vec<_>>()).expect("one element each")
}

/// Returns a float32 tensor of numbers between -1 and 1.
pub(super) fn noise(shape: &[usize], seed: u64) -> Literal {
    let mut random = fastrand::Rng::with_seed(seed);
    let n = element_count(shape).expect("a small shape");
    let numbers = std::iter::repeat_with(|| 2.0 * random.f32() - 1.0);
    Literal::from_elements(shape, &numbers.take(n).collect::<Vec<_>>()).expect("one element each")
}

/// Returns the elements of an int32 tensor.
pub(super) fn values(l: &Literal) -> Vec<i32> {
    l.elements::<i32>().expect("int32").into_owned()
}

/// Returns a float64 tensor.
pub(super) fn f64s(shape: &[usize], values: &[f64]) -> Literal {
    Literal::from_elements(shape, values).expect("one element each")
}

/// Asserts the shape and, up to rounding, the elements of a float64 tensor.
#[track_caller]
pub(super) fn close(got: &Literal, shape: &[usize], expected: &[f64]) {
    assert_eq!(got.shape(), shape);
    let elements = got.elements::<f64>().expect("float64");
    assert_eq!(elements.len(), expected.len());
    for (g, e) in elements.iter().zip(expected) {
        assert!((g - e).abs() < 1e-9 || (g.is_nan() && e.is_nan()), "{g} {e}");
    }
}
