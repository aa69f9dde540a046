//! Suggestions for misspelt names.

use anfora_ir::did_you_mean;

#[test]
fn the_nearest_is_suggested_and_nonsense_is_not() {
    let names = ["add", "subtract", "nn.conv2d", "FoldConstant"];
    assert_eq!(did_you_mean("substract", names), Some("subtract"));
    assert_eq!(did_you_mean("nn.con2vd", names), Some("nn.conv2d"));
    assert_eq!(did_you_mean("foldconstant", names), Some("FoldConstant"));
    assert_eq!(did_you_mean("zzzzzz", names), None);
    assert_eq!(did_you_mean("phase2", ["phase0", "phase1", "phase2.1", "phase2.2"]), Some("phase2.1"));
    assert_eq!(did_you_mean("phas", ["phase0", "phase2.1"]), Some("phase0"));
    assert_eq!(did_you_mean("nn", ["add", "nn.conv2d"]), None);
}
