//! Digests of tensors, by which the results of two runs are compared.

use anfora_ir::Literal;

/// Returns a digest of a tensor's bytes and, for float32, the range and the mean:
/// `70a7355b52911a9e min -49.114353 max 48.689106 mean 0.014890`. A splat may be larger than any
/// memory, so its digest is made from the one element and the number of elements.
///
/// Cost: linear in the stored elements.
///
/// ```
/// use anfora_ir::Literal;
/// use anfora_interp::digest;
///
/// let x = Literal::from_elements(&[2], &[1.5f32, -2.0]).unwrap();
/// assert!(digest(&x).ends_with(" min -2.0 max 1.5 mean -0.250000"));
/// assert_ne!(digest(&x), digest(&Literal::splat(&[2], 1.5f32)));
/// ```
pub fn digest(tensor: &Literal) -> String {
    let (tensor, repeats) = match tensor.as_splat() {
        Some(element) => (&Literal::splat_bytes(tensor.dtype(), &[1], element), Some(tensor.element_count() as u64)),
        None => (tensor, None),
    };
    let bytes = tensor.to_bytes();
    let words = bytes.chunks(8).map(|c| c.iter().rev().fold(0u64, |w, &b| w << 8 | u64::from(b)));
    let hash = words
        .chain(repeats)
        .fold(0xcbf2_9ce4_8422_2325u64, |h, word| (h ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23));
    let finite = tensor.elements::<f32>().map(|e| {
        let (min, max) = e.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), &v| (a.min(v), b.max(v)));
        let sum: f64 = e.iter().map(|&v| f64::from(v)).sum();
        format!(" min {min:?} max {max:?} mean {:.6}", sum / e.len().max(1) as f64)
    });
    format!("{hash:016x}{}", finite.unwrap_or_default())
}
