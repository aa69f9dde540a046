//! Sketches that one reader reads one after the other.

use anfora_ir::{SketchReader, parse_sketch};

#[test]
fn a_sketch_is_read_as_if_it_were_the_first() {
    let mut reader = SketchReader::default();
    for text in [
        "add(%x, 1",
        "f(%x, a=fn(%y: Tensor[(n,), float32]) { %z })",
        "dense<fn(Tensor[(n,), bool]) -> bool>[1]",
        "add(%x, 2f)",
        "sum(%x, axis=[1, 2])",
        "add(%x, 1",
    ] {
        assert_eq!(format!("{:?}", reader.read(text)), format!("{:?}", parse_sketch(text)), "{text}");
    }
}
