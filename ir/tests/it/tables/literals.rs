//! Constants: splats, packed elements, and wrong numbers of bytes.

use anfora_ir::{DType, Literal, LiteralError};
use bytes::Bytes;

#[test]
fn a_splat_and_its_expansion_are_one_literal() {
    let dense = Literal::from_elements(&[2, 2], &[1.5f32; 4]).unwrap();
    assert_eq!(dense, Literal::splat(&[2, 2], 1.5f32));
    assert_eq!(dense.as_splat(), Some(&1.5f32.to_le_bytes()[..]));
    assert_eq!(dense.elements::<f32>().unwrap().as_ref(), &[1.5; 4]);
    assert_ne!(Literal::scalar(0.0f32), Literal::scalar(-0.0f32));
    assert_eq!(Literal::scalar(f32::NAN), Literal::scalar(f32::NAN));
}

#[test]
fn a_huge_splat_takes_one_element() {
    let l = Literal::splat(&[1_000_000, 1_000_000], 0i8);
    assert_eq!(l.stored_bytes(), 1);
    assert_eq!(l.expanded_bytes(), Some(1_000_000_000_000));
}

#[test]
fn nibbles_are_packed_and_the_spare_half_is_ignored() {
    let a = Literal::from_bytes(DType::Int4, &[3], Bytes::from_static(&[0x21, 0x93])).unwrap();
    let b = Literal::from_bytes(DType::Int4, &[3], Bytes::from_static(&[0x21, 0x03])).unwrap();
    assert_eq!(a, b);
    let s = Literal::from_bytes(DType::Int4, &[3], Bytes::from_static(&[0x55, 0x05])).unwrap();
    assert_eq!(s, Literal::splat_bytes(DType::Int4, &[3], &[5]));
    assert_eq!(s.to_bytes().as_ref(), &[0x55, 0x05]);
}

#[test]
fn quarters_of_a_byte_are_packed() {
    let codes = [1, 2, 3, 0, 2];
    let a = Literal::from_codes(DType::UInt2, &[5], &codes).unwrap();
    assert_eq!(a, Literal::from_bytes(DType::UInt2, &[5], Bytes::from_static(&[0b00_11_10_01, 0xfe])).unwrap());
    assert_eq!(a.to_codes().unwrap().as_ref(), &codes);
    let s = Literal::from_codes(DType::Int2, &[5], &[2; 5]).unwrap();
    assert_eq!(s, Literal::splat_bytes(DType::Int2, &[5], &[2]));
    assert_eq!(s.to_bytes().as_ref(), &[0xaa, 2]);
    let b = Literal::from_codes(DType::Float8E5M2, &[2], &[0x3c, 0xff]).unwrap();
    assert_eq!(b.to_codes().unwrap().as_ref(), &[0x3c, 0xff]);
    assert_eq!(Literal::from_codes(DType::Int16, &[1], &[0]), Err(LiteralError::WrongKind(DType::Int16)));
    assert_eq!(Literal::scalar(1i16).to_codes(), None);
}

#[test]
fn a_wrong_number_of_bytes_is_an_error() {
    let e = Literal::from_bytes(DType::Int16, &[3], Bytes::from_static(&[1, 2]));
    assert_eq!(e, Err(LiteralError::ByteCount { dtype: DType::Int16, elements: 3, expected: 6, actual: 2 }));
}
