//! Files of the kinds that public advisories of 2026 about ONNX tools describe. Each is read, or
//! refused with an error, in time and memory that its size bounds.

use std::sync::Arc;

use anfora_ir::verify_module;
use anfora_manager::{Pass, PassContext, parse_pipeline};
use anfora_onnx::convert::{int_attribute, ints_attribute, tensor_attribute};
use anfora_onnx::proto::tensor_proto::DataLocation;
use anfora_onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
    TensorProto, ValueInfoProto,
};
use anfora_onnx::tensor::tensor_of;
use anfora_onnx::{DataFolder, ExportOptions, ImportOptions, Imported, export, import};
use anfora_testing::on_small_stack;
use prost::Message;

use crate::models::{
    BOOL, FLOAT, float, floats, graph, graph_attribute, info, initializer, ints, model, node, one_node, try_read,
};

/// Reads a model on a small stack, runs the usual passes on it and writes it. Returns the number of
/// nodes that are written, or the error of the reader.
fn passes_through(model: &ModelProto) -> Result<usize, String> {
    let bytes = model.encode_to_vec();
    on_small_stack(move || {
        let Imported { mut module, .. } = import(bytes.into(), &ImportOptions::default()).map_err(|e| e.to_string())?;
        let registry = anfora_passes::registry();
        let pipeline = parse_pipeline(&registry, "O2").expect("a pipeline");
        pipeline.apply(&mut module, &PassContext::with_registry(registry)).map_err(|e| e.to_string())?;
        verify_module(&module).map_err(|e| e.to_string())?;
        Ok(export(&module, &ExportOptions::default()).map_err(|e| e.to_string())?.nodes.total())
    })
}

/// A load of a few kilobytes that takes minutes elsewhere: each level of nested `If` is inferred
/// again for each level around it.
#[test]
fn nested_branches_are_typed_once() {
    let mut inner = graph("g", vec![node("Neg", &["x"], &["y30"], vec![])], vec![], vec![float("y30", &[2])]);
    for i in (1..30).rev() {
        let output = format!("y{i}");
        let other = graph("o", vec![node("Abs", &["x"], &[&output], vec![])], vec![], vec![float(&output, &[2])]);
        let branches = vec![graph_attribute("then_branch", &other), graph_attribute("else_branch", &inner)];
        inner = graph("g", vec![node("If", &["c"], &[&output], branches)], vec![], vec![float(&output, &[2])]);
    }
    inner.input = vec![info("c", BOOL, &[]), float("x", &[2])];
    // The condition of inner branches is known in those of outer ones.
    assert!(passes_through(&model(13, inner)).is_ok_and(|nodes| nodes <= 59));
}

fn function(name: &str, nodes: Vec<NodeProto>) -> FunctionProto {
    FunctionProto {
        name: Some(name.to_string()),
        domain: Some("local".to_string()),
        input: vec!["a".to_string(), "c".to_string()],
        output: vec!["b".to_string()],
        node: nodes,
        opset_import: vec![of_domain("", 18), of_domain("local", 1)],
        ..FunctionProto::default()
    }
}

fn of_domain(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.to_string()), version: Some(version) }
}

fn call(name: &str, input: &str, output: &str) -> NodeProto {
    NodeProto { domain: Some("local".to_string()), ..node(name, &[input, "c"], &[output], vec![]) }
}

/// Returns a model that calls the function `f0`.
fn calling(functions: Vec<FunctionProto>) -> ModelProto {
    let inputs = vec![float("x", &[2]), info("c", BOOL, &[])];
    let g = graph("g", vec![call("f0", "x", "y")], inputs, vec![float("y", &[2])]);
    let mut m = model(18, g);
    m.ir_version = Some(9);
    m.opset_import.push(of_domain("local", 1));
    m.functions = functions;
    m
}

/// Functions that call themselves overflow the stack of tools that inline them by recursion:
/// directly, through each other, and through the graph of a node.
#[test]
fn functions_that_call_themselves_are_refused() {
    let branch = graph("t", vec![call("f0", "a", "t")], vec![], vec![float("t", &[2])]);
    let other = graph("e", vec![node("Neg", &["a"], &["t"], vec![])], vec![], vec![float("t", &[2])]);
    let through_graph = node(
        "If",
        &["c"],
        &["b"],
        vec![graph_attribute("then_branch", &branch), graph_attribute("else_branch", &other)],
    );
    let ring = |n: usize| {
        let next = |i: usize| format!("f{}", (i + 1) % n);
        (0..n).map(|i| function(&format!("f{i}"), vec![call(&next(i), "a", "b")])).collect::<Vec<_>>()
    };
    for functions in [ring(1), ring(2), ring(1000), vec![function("f0", vec![through_graph])]] {
        let error = passes_through(&calling(functions)).expect_err("it is refused");
        assert!(error.contains("calls itself"), "{error}");
    }
}

/// Each function calls the next one twice: 2^60 nodes where calls are replaced by bodies.
#[test]
fn functions_that_double_stay_functions() {
    let level = |i: usize| {
        let next = format!("f{}", i + 1);
        let nodes = match i + 1 < 60 {
            true => vec![call(&next, "a", "m"), call(&next, "m", "b")],
            false => vec![node("Relu", &["a"], &["b"], vec![])],
        };
        function(&format!("f{i}"), nodes)
    };
    let nodes = passes_through(&calling((0..60).map(level).collect())).expect("it is read");
    assert!(nodes <= 120, "{nodes} nodes");
}

/// A chain of functions as long as the file allows.
#[test]
fn functions_call_functions_as_deep_as_they_want() {
    let n = 2000;
    let level = |i: usize| {
        let nodes = match i + 1 < n {
            true => vec![call(&format!("f{}", i + 1), "a", "b")],
            false => vec![node("Relu", &["a"], &["b"], vec![])],
        };
        function(&format!("f{i}"), nodes)
    };
    passes_through(&calling((0..n).map(level).collect())).expect("it is read");
}

/// An operator, the extents of its inputs, and its attributes that are lists of integers.
type OfOperator = (&'static str, &'static [&'static [i64]], &'static [&'static str]);

/// Shape inference with extents, strides and pads near the ends of 64 bits.
#[test]
fn arithmetic_on_extents_does_not_overflow() {
    let extremes = [i64::MAX, i64::MIN, i64::MIN + 1, -1, 0, 1 << 62];
    let ops: &[OfOperator] = &[
        ("Conv", &[&[1, 1, 8, 8], &[1, 1, 3, 3]], &["strides", "dilations", "pads", "kernel_shape"]),
        ("ConvTranspose", &[&[1, 1, 8, 8], &[1, 1, 3, 3]], &["strides", "pads", "output_padding", "output_shape"]),
        ("MaxPool", &[&[1, 1, 8, 8]], &["kernel_shape", "strides", "pads", "dilations"]),
        ("AveragePool", &[&[1, 1, 8, 8]], &["kernel_shape", "strides", "pads"]),
        ("LpPool", &[&[1, 1, 8, 8]], &["kernel_shape", "strides", "pads"]),
        ("Transpose", &[&[2, 3]], &["perm"]),
        ("ReduceMean", &[&[2, 3]], &["axes"]),
        ("Squeeze", &[&[1, 3]], &["axes"]),
        ("Unsqueeze", &[&[2, 3]], &["axes"]),
    ];
    for (op, inputs, attributes) in ops {
        for attribute in *attributes {
            for value in extremes {
                for length in [1, 2, 4] {
                    let mut given = vec![ints_attribute(attribute, &vec![value; length])];
                    if attribute != &"kernel_shape" && op.ends_with("Pool") {
                        given.push(ints_attribute("kernel_shape", &[2, 2]));
                    }
                    // The node is kept as it is, or is one of our operators.
                    let nodes = passes_through(&one_node(11, op, inputs, given));
                    assert_eq!(nodes, Ok(1), "{op}, {attribute} of {length} times {value}");
                }
            }
        }
    }
    let ints_of: &[(&str, &[i64])] =
        &[("SpaceToDepth", &extremes), ("DepthToSpace", &extremes), ("Flatten", &extremes), ("Softmax", &extremes)];
    for (op, values) in ints_of {
        for &value in *values {
            let name = if op.contains("Depth") { "blocksize" } else { "axis" };
            let nodes = passes_through(&one_node(11, op, &[&[1, 4, 2, 2]], vec![int_attribute(name, value)]));
            assert_eq!(nodes, Ok(1), "{op}, {name} {value}");
        }
    }
}

/// Constants whose shapes say 2^40 elements and more, from a few bytes.
#[test]
fn huge_extents_take_no_memory() {
    let huge = 1 << 40;
    let shape = || initializer("s", &ints(&[huge]));
    let value = || tensor_attribute("value", tensor_of(&floats(&[1.0]), 1 << 10).expect("a small constant"));
    let scalar = |name: &str, n: i64| initializer(name, &anfora_ir::Literal::scalar(n));
    let cases: Vec<(Vec<NodeProto>, Vec<TensorProto>)> = vec![
        (vec![node("ConstantOfShape", &["s"], &["y"], vec![value()])], vec![shape()]),
        (vec![node("Expand", &["x", "s"], &["y"], vec![])], vec![shape()]),
        (vec![node("Tile", &["x", "s"], &["y"], vec![])], vec![shape()]),
        (
            vec![node("Range", &["l", "s", "d"], &["y"], vec![])],
            vec![scalar("l", 0), scalar("s", huge), scalar("d", 1)],
        ),
        (vec![node("Pad", &["x", "p"], &["y"], vec![])], vec![initializer("p", &ints(&[huge, huge]))]),
        (vec![node("Resize", &["x", "", "", "s"], &["y"], vec![])], vec![shape()]),
    ];
    for (nodes, initializers) in cases {
        let outputs = vec![ValueInfoProto { name: Some("y".to_string()), ..Default::default() }];
        let mut g = graph("g", nodes, vec![], outputs);
        g.initializer = initializers;
        g.initializer.push(initializer("x", &floats(&[1.0])));
        let op = g.node[0].op_type().to_string();
        // A constant that repeats a number is one or two nodes; the other calls stay.
        assert!(passes_through(&model(13, g)).is_ok_and(|nodes| (1..=2).contains(&nodes)), "{op}");
    }
    // A constant without its elements is refused, and so is one with a negative extent.
    for dims in [vec![huge], vec![huge, huge, huge], vec![-1], vec![i64::MIN, i64::MIN]] {
        let w = TensorProto { name: Some("w".to_string()), dims, data_type: Some(FLOAT), ..TensorProto::default() };
        let g = graph("g", vec![node("Neg", &["w"], &["y"], vec![])], vec![], vec![float("y", &[1])]);
        assert!(try_read(&model(13, GraphProto { initializer: vec![w], ..g })).is_err());
    }
}

/// Attributes by the ten thousands, attributes with very many numbers, and repeated names.
#[test]
fn attributes_cost_what_they_say() {
    let many: Vec<AttributeProto> = (0..20_000).map(|i| int_attribute(&format!("a{i}"), i)).collect();
    assert_eq!(passes_through(&one_node(13, "Relu", &[&[2]], many)), Ok(1));
    let numbers: Vec<i64> = (0..100_000).collect();
    let long = vec![ints_attribute("axes", &numbers)];
    assert_eq!(passes_through(&one_node(11, "ReduceSum", &[&[2]], long)), Ok(1));
    let twice = vec![int_attribute("axis", 0), int_attribute("axis", 1)];
    assert!(passes_through(&one_node(13, "Softmax", &[&[2]], twice)).is_err());
}

/// The extent of an initializer and its entries about external data.
type External<'a> = (i64, &'a [(&'a str, &'a str)]);

/// Returns a model of `x + w` whose initializers have these entries about external data.
fn external(all: &[External<'_>]) -> ModelProto {
    let tensor = |(i, &(n, entries)): (usize, &External<'_>)| TensorProto {
        name: Some(if i == 0 { "w".into() } else { format!("w{i}") }),
        dims: vec![n],
        data_type: Some(FLOAT),
        data_location: Some(DataLocation::External as i32),
        external_data: entries
            .iter()
            .map(|&(key, value)| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) })
            .collect(),
        ..TensorProto::default()
    };
    let nodes = vec![node("Add", &["x", "w"], &["y"], vec![])];
    let g = graph("g", nodes, vec![float("x", &[1])], vec![float("y", &[all[0].0])]);
    model(13, GraphProto { initializer: all.iter().enumerate().map(tensor).collect(), ..g })
}

fn read_beside(folder: &Folder, model: &ModelProto) -> Result<Imported, String> {
    let options = ImportOptions { data_files: Some(Arc::new(DataFolder::new(&folder.0))), ..ImportOptions::default() };
    import(model.encode_to_vec().into(), &options).map_err(|e| e.to_string())
}

/// Entries of external data beyond those of the format, which set fields of objects elsewhere.
#[test]
fn unknown_entries_of_external_data_do_nothing() {
    let folder = folder("unknown");
    std::fs::write(folder.0.join("w.bin"), [0u8; 8]).expect("a file can be written");
    let m = external(&[(2, &[("__class__", "x"), ("basepath", "/etc"), ("location", "w.bin")])]);
    assert!(read_beside(&folder, &m).is_ok());
}

/// Paths of external data that lead out of the folder, by their text or by a link, and files that
/// are not regular: devices without end, pipes on which a reader waits for ever, and folders.
#[test]
fn external_data_is_a_regular_file_of_the_folder() {
    let folder = folder("paths");
    let inside = folder.0.join("model");
    std::fs::create_dir_all(inside.join("sub")).expect("a folder can be made");
    std::fs::write(folder.0.join("secret"), [1u8; 8]).expect("a file can be written");
    std::fs::write(inside.join("w.bin"), [1u8; 8]).expect("a file can be written");
    let absolute = folder.0.join("secret").display().to_string();
    let mut bad = vec!["../secret", "sub/../../secret", "sub/../w.bin", &absolute, "sub", ".", "w.bin\0", "", "absent"];
    #[cfg(unix)]
    {
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, inside.join(name)).expect("a link");
        link("../secret", "link");
        link("..", "up");
        link("/dev/zero", "zero");
        link("/dev/stdin", "stdin");
        link("loop", "loop");
        let pipe = std::process::Command::new("mkfifo").arg(inside.join("pipe")).status();
        assert!(pipe.expect("mkfifo can be run").success());
        bad.extend(["link", "up/secret", "zero", "stdin", "loop", "pipe", "/dev/zero", "/proc/self/mem"]);
    }
    let inside = Folder(inside);
    for location in bad {
        let refused = read_beside(&inside, &external(&[(2, &[("location", location)])]));
        assert!(refused.is_err(), "{location:?} is read");
    }
    for location in ["./w.bin", ".//./w.bin"] {
        assert!(read_beside(&inside, &external(&[(2, &[("location", location)])])).is_ok(), "{location:?} is refused");
    }
}

/// Ranges outside of the file, lengths that overflow, and ranges that overlap so often that a
/// reader would process many times the bytes of the file.
#[test]
fn ranges_of_external_data_are_inside_the_file_and_few() {
    let folder = folder("ranges");
    let size = 1usize << 22;
    let bytes: Vec<u8> = (0..size as u32 / 4).flat_map(u32::to_le_bytes).collect();
    std::fs::write(folder.0.join("w.bin"), bytes).expect("a file can be written");
    let max = u64::MAX.to_string();
    let at = |n: i64, offset: &str, length: &str| {
        read_beside(&folder, &external(&[(n, &[("location", "w.bin"), ("offset", offset), ("length", length)])]))
    };
    for (n, offset, length) in [
        (2, "4194300", "8"),
        (2, &*max, "8"),
        (2, "18446744073709551612", "8"),
        (1 << 40, "0", "4398046511104"),
        (i64::MAX, "0", &*max),
        (2, "0", "9"),
        (2, "-1", "8"),
    ] {
        assert!(at(n, offset, length).is_err(), "{n} elements at {offset}, {length} bytes");
    }
    assert!(at(2, "4194296", "8").is_ok());
    // The same range often, and overlapping ranges.
    let whole = [("location", "w.bin"), ("offset", "0")];
    let n = size as i64 / 4;
    let same = vec![(n, &whole[..]); 1000];
    assert!(read_beside(&folder, &external(&same)).is_ok(), "ties are usual");
    let offsets: Vec<String> = (0..1000).map(|i| (4 * i).to_string()).collect();
    let shifted: Vec<[(&str, &str); 2]> = offsets.iter().map(|o| [("location", "w.bin"), ("offset", &**o)]).collect();
    let shifted: Vec<(i64, &[(&str, &str)])> = shifted.iter().map(|e| (n - 1000, &e[..])).collect();
    let refused = read_beside(&folder, &external(&shifted)).map(|_| ()).expect_err("4 GB of a file of 4 MB");
    assert!(refused.contains("too many overlap"), "{refused}");
}

struct Folder(std::path::PathBuf);

fn folder(name: &str) -> Folder {
    let path = std::env::temp_dir().join(format!("anfora-advisories-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a folder for temporary files");
    Folder(path)
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Names of operators are bytes of the file. A table that showed them as they are could be as wide
/// as the longest of them, or write to the terminal.
#[test]
fn names_of_operators_do_not_spoil_the_table() {
    let long = "L".repeat(100_000);
    let of =
        |op: &str, from: &str, to: &str| NodeProto { domain: Some("d".into()), ..node(op, &[from], &[to], vec![]) };
    let nodes = vec![of("A\n\u{1b}[31m", "x", "a"), of(&long, "a", "b"), node("Relu", &["b"], &["y"], vec![])];
    let m = model(17, graph("g", nodes, vec![float("x", &[2])], vec![float("y", &[2])]));
    let counts = import(m.encode_to_vec().into(), &ImportOptions::default()).expect("a model").nodes;
    assert_eq!(counts.of(&format!("d.{long}")), 1);
    let table = counts.table(&counts);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 5, "{table}");
    assert!(lines[2].starts_with(r"d.A\n\u{1b}[31m "), "{table}");
    assert!(lines[3].starts_with("d.LLL") && lines[3].contains("L…  "), "{table}");
    assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{table}");
}
