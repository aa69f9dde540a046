//! Ids, and the tables and sets that they index.

use anfora_ir::{EntityId, Expr, ExprId, IdSet, SideTable, SparseSet, VarId};

#[test]
fn an_optional_id_takes_four_bytes() {
    assert_eq!(size_of::<Option<ExprId>>(), 4);
    assert_eq!(size_of::<ExprId>(), 4);
}

#[test]
fn a_side_table_has_a_default_and_grows() {
    let mut t = SideTable::<ExprId, u8>::new(1, 7);
    let far = ExprId::from_index(100);
    assert_eq!(t[far], 7);
    t.set(far, 1);
    assert_eq!(t[far], 1);
    assert_eq!(t[ExprId::from_index(50)], 7);
}

#[test]
fn an_id_set_inserts_once() {
    let mut s = IdSet::with_capacity(0);
    let id = ExprId::from_index(70);
    assert!(s.insert(id));
    assert!(!s.insert(id));
    assert!(s.contains(id) && !s.contains(ExprId::from_index(6)));
    assert!(s.remove(id) && !s.contains(id));
}

#[test]
fn an_expression_takes_at_most_16_bytes() {
    assert!(size_of::<Expr>() <= 16);
    assert_eq!(size_of::<Option<VarId>>(), 4);
}

#[test]
fn few_become_many_and_nothing_is_lost() {
    for mut set in [SparseSet::of_part(640), SparseSet::of_whole(640)] {
        for i in (0..640).step_by(3) {
            let id = ExprId::from_index(i);
            assert!(!set.contains(id) && set.insert(id) && !set.insert(id) && set.contains(id));
        }
        let kept = (0..640).filter(|&i| set.contains(ExprId::from_index(i)));
        assert!(kept.eq((0..640).step_by(3)));
    }
}
