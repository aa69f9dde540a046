//! The groups of FuseOps, against a definition that walks every path.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anfora_ir::{Module, Source, parse_module, verify_module};
use anfora_passes::{FusionLimits, fuse_ops};
use anfora_visit::bindings;
use fastrand::Rng;

// The kinds of nodes are those of `FusionPattern`, as numbers: elementwise, with broadcasting,
// injective, a reduction, an operator that elementwise ones may follow, a tuple, and any other
// call.
const TUPLE: u8 = 7;
const OPAQUE: u8 = 8;

/// Kinds of nodes, their extents, and edges (used node, user, label).
struct Plain {
    kinds: Vec<u8>,
    extents: Vec<u8>,
    edges: Vec<(u32, u32, u8)>,
}

impl Plain {
    fn random(random: &mut Rng) -> Plain {
        let n = random.u32(2..26);
        // The graphs range from only elementwise operations to a mix of all kinds.
        let choice: &[u8] = match random.u32(..4) {
            0 => &[0, 0, 0, 1],
            1 => &[0, 1, 2, 0, 0, 4],
            2 => &[0, 0, 1, 2, 3, 4],
            _ => &[0, 0, 0, 1, 1, 2, 2, 3, 4, TUPLE, OPAQUE],
        };
        let reach = random.u32(1..7);
        let kinds: Vec<u8> = (0..n).map(|_| choice[random.usize(..choice.len())]).collect();
        let extents: Vec<u8> = (0..n).map(|_| random.u8(2..4)).collect();
        let mut edges = Vec::new();
        for to in 1..n {
            let operands: BTreeSet<u32> = (0..random.u32(1..4)).map(|_| to - 1 - random.u32(..reach.min(to))).collect();
            for from in operands {
                let is_tuple = kinds[from as usize] == TUPLE;
                let label = match kinds[to as usize] {
                    1 if !is_tuple && extents[from as usize] == extents[to as usize] => 0,
                    TUPLE if !is_tuple => 2,
                    TUPLE => OPAQUE,
                    kind => kind,
                };
                edges.push((from, to, label));
            }
        }
        Plain { kinds, extents, edges }
    }

    fn operands(&self, node: u32) -> Vec<String> {
        let found: Vec<String> = self.edges.iter().filter(|e| e.1 == node).map(|e| format!("%v{}", e.0)).collect();
        if found.is_empty() { vec!["%x".to_string()] } else { found }
    }

    /// Returns the graph as a program. Each call is one of a declared function of its own, so no
    /// two groups become one function.
    fn module(&self) -> Module {
        let (mut declarations, mut lines) = (String::new(), String::new());
        for (node, (&kind, extent)) in (0u32..).zip(self.kinds.iter().zip(&self.extents)) {
            let operands = self.operands(node);
            let list = operands.join(", ");
            if kind == TUPLE {
                let _ = writeln!(lines, "let %v{node} = ({list},);");
                continue;
            }
            let params: String = (0..operands.len()).map(|i| format!("%p{i}: Any, ")).collect();
            let pattern = if kind == OPAQUE { String::new() } else { format!("op_pattern={kind}, ") };
            let _ =
                writeln!(declarations, "declare @n{node}({params}{pattern}Pure=1) -> Tensor[({extent},), float32];");
            let _ = writeln!(lines, "let %v{node} = @n{node}({list});");
        }
        let is_used = |node: &u32| self.edges.iter().any(|e| e.0 == *node);
        let results: Vec<String> =
            (0..self.kinds.len() as u32).filter(|node| !is_used(node)).map(|node| format!("%v{node}")).collect();
        let results = results.join(", ");
        let text = format!(
            "{declarations}def @main(%x: Tensor[(2,), float32]) {{\ndataflow {{\n{lines}output({results})\n}}\n({results},)\n}}"
        );
        parse_module(Source::new("graph", text.as_str()), anfora_ops::standard())
            .unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
    }
}

/// The algorithm of the peers, path by path. The size of a group is its number of nodes.
fn by_definition(plain: &Plain, max_depth: usize) -> Vec<u32> {
    let n = plain.kinds.len() as u32;
    let users = |node: u32| plain.edges.iter().filter(move |e| e.0 == node);
    // `post` holds, by node, the later nodes on every path from it; `between` returns the nodes on
    // the paths to `end`.
    let mut post: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); n as usize];
    for node in (0..n).rev() {
        let mut sets = users(node).map(|e| {
            let mut set = post[e.1 as usize].clone();
            set.insert(e.1);
            set
        });
        let first = sets.next().unwrap_or_default();
        post[node as usize] = sets.fold(first, |all, set| all.intersection(&set).copied().collect());
    }
    let between = |node: u32, end: u32| {
        let (mut seen, mut stack, mut label) = (BTreeSet::new(), vec![node], 0);
        while let Some(at) = stack.pop() {
            for &(_, to, l) in users(at) {
                label = label.max(l);
                if to != end && seen.insert(to) {
                    stack.push(to);
                }
            }
        }
        (seen, label)
    };
    let mut group: Vec<u32> = (0..n).collect();
    let mut kinds = plain.kinds.clone();
    for phase in 0..3 {
        for node in 0..n {
            let Some(&end) = post[node as usize].first() else { continue };
            let (inside, label) = between(node, end);
            let root = group[end as usize];
            let kind = kinds[node as usize];
            if group[node as usize] == root || kind == OPAQUE {
                continue;
            }
            let all: BTreeSet<u32> = inside.iter().chain([&node, &end]).map(|&i| group[i as usize]).collect();
            let size = group.iter().filter(|g| all.contains(g)).count();
            let at_most = |limit: u8| inside.iter().all(|&i| kinds[group[i as usize] as usize] <= limit);
            let root_kind = kinds[root as usize];
            let fits = if phase == 2 {
                kind <= 2 && kinds[end as usize] == TUPLE && root_kind <= 2 && at_most(2)
            } else if kinds[end as usize] == TUPLE {
                false
            } else {
                match kind {
                    4 => phase == 0 && label == 0 && at_most(1) && root_kind <= 1,
                    0 | 1 => (label <= 2 || label == 3) && at_most(2) && root_kind <= 4,
                    2 | TUPLE => phase == 1 && at_most(2) && root_kind <= 2,
                    _ => false,
                }
            };
            if fits && size <= max_depth {
                group.iter_mut().filter(|g| all.contains(g)).for_each(|g| *g = root);
                if kind == 4 {
                    kinds[root as usize] = 4;
                }
            }
        }
    }
    group
}

/// Returns the nodes of the functions that FuseOps made.
fn fused(module: &Module) -> BTreeSet<BTreeSet<u32>> {
    let primitive = module.functions().filter(|(_, f)| f.is_definition() && f.is_primitive(&module.cx));
    let nodes = primitive.map(|(_, f)| {
        let names = bindings(&f.body, f.body.root()).filter_map(|b| f.body.binding_name(&module.cx, b.id));
        names.map(|name| name[1..].parse().expect("a number")).collect()
    });
    nodes.collect()
}

#[test]
fn groups_are_those_that_walking_every_path_finds() {
    let mut random = Rng::with_seed(7);
    let mut with_groups = 0;
    let graphs = 20 * anfora_testing::cases(50);
    for _ in 0..graphs {
        let plain = Plain::random(&mut random);
        let max_depth = [256, 8, 4, 3][random.usize(..4)];
        let last = by_definition(&plain, max_depth as usize);
        let groups = (0..last.len() as u32).map(|end| -> BTreeSet<u32> {
            (0..last.len() as u32).filter(|&node| last[node as usize] == end).collect()
        });
        let has_call = |group: &BTreeSet<u32>| group.iter().any(|&node| plain.kinds[node as usize] != TUPLE);
        let wanted: BTreeSet<BTreeSet<u32>> = groups.filter(|group| group.len() > 1 && has_call(group)).collect();
        let mut module = plain.module();
        fuse_ops(&mut module, FusionLimits { max_depth, max_function_args: 0 });
        verify_module(&module).unwrap_or_else(|e| panic!("{}\n{module}", e[0]));
        assert_eq!(fused(&module), wanted, "at most {max_depth} bindings:\n{}", plain.module());
        with_groups += usize::from(!wanted.is_empty());
    }
    assert!(with_groups * 2 > graphs, "{with_groups} graphs have groups");
}
