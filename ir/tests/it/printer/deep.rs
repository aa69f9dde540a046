//! Deep, long and shared programs, on a small stack.

use anfora_ir::{
    Annotations, Attr, BuildError, DType, DimOp, ExprId, FunctionBuilder, PrintOptions, print_module, write_module,
};
use anfora_testing::{depth, on_small_stack};

use super::{condition, f32x8, function_attr, main_of, module, parse};

fn levels() -> usize {
    depth(5_000)
}

#[test]
fn shared_parts_of_types_and_attributes_are_written_once() {
    on_small_stack(|| {
        let mut m = module();
        let mut ty = f32x8(&mut m);
        let mut attr = m.cx.int_attr(1);
        let mut function = attr;
        for i in 0..200 {
            ty = m.cx.types.tuple(&[ty, ty]);
            attr = m.cx.attr(Attr::List([attr, attr].into()));
            function = function_attr(&mut m, &i.to_string(), &[("a", function), ("b", function)]);
        }
        let mut f = FunctionBuilder::new(&mut m, "main");
        let x = f.param("x", ty);
        f.attr("a", attr);
        f.attr("f", function);
        f.finish(x).unwrap();
        let text = m.to_text();
        assert!(text.len() < 50_000, "{}", text.len());
        assert_eq!(parse(&text).to_text(), text);
    });
}

#[test]
fn shared_parts_that_name_symbols_are_not_written_again_and_again() {
    on_small_stack(|| {
        let mut m = module();
        let mut f = FunctionBuilder::new(&mut m, "main");
        let mut dim = f.symbol("n");
        let ty = f.cx().types.tensor(DType::Float32, &[dim]);
        let x = f.param("x", ty);
        let dims = &mut f.cx().types.dims;
        let (two, three) = (dims.constant(2), dims.constant(3));
        for _ in 0..100 {
            let (half, third) = (dims.op(DimOp::FloorDiv, dim, two), dims.op(DimOp::CeilDiv, dim, three));
            dim = dims.op(DimOp::Max, half, third);
        }
        let computed = f.cx().types.tensor(DType::Float32, &[dim]);
        f.param("y", computed);
        let mut value = x;
        for _ in 0..100 {
            let pair = f.tuple(&[value, value]);
            value = f.bind("pair", pair);
        }
        f.finish(value).unwrap();
        let text = m.to_text();
        assert!(text.len() < 10_000, "{}", text.len());
        assert_eq!(parse(&text).to_text(), text);
        let mut all = String::new();
        let options = PrintOptions { annotations: Annotations::All, ..PrintOptions::default() };
        print_module(&m, &options, &mut all).unwrap();
        assert!(all.len() < 100_000_000, "{}", all.len());
    });
}

#[test]
fn deep_types_and_attributes_need_no_stack() {
    on_small_stack(|| {
        let mut m = module();
        let mut b = FunctionBuilder::new(&mut m, "main");
        let n = b.symbol("n");
        let seven = b.cx().types.dims.constant(7);
        let mut dim = n;
        let mut symbolic = b.cx().types.tensor(DType::Float32, &[n]);
        let mut ty = b.cx().types.scalar(DType::Float32);
        let mut attr = b.cx().int_attr(1);
        for _ in 0..100_000 {
            dim = b.cx().types.dims.op(DimOp::FloorDiv, dim, seven);
            symbolic = b.cx().types.tuple(&[symbolic]);
            ty = b.cx().types.function(&[ty], ty, &[]);
            attr = b.cx().attr(Attr::List([attr].into()));
        }
        let dims = b.cx().types.tensor(DType::Float32, &[n, dim]);
        let x = b.param("x", dims);
        b.param("y", symbolic);
        b.param("z", ty);
        b.attr("a", attr);
        b.finish(x).unwrap();
        let text = m.to_text();
        assert_eq!(parse(&text).to_text(), text);
        let mut bytes = Vec::new();
        write_module(&m, &PrintOptions::default(), &mut bytes).unwrap();
        assert_eq!(bytes, text.into_bytes());
    });
}

fn round_trip_deep(build: fn(&mut FunctionBuilder<'_>, ExprId) -> Result<ExprId, BuildError>) {
    on_small_stack(move || {
        let m = main_of(build);
        let text = m.to_text();
        assert!(text.len() < levels() * 400);
        drop(m);
        let parsed = parse(&text);
        assert!(parsed.to_text() == text, "printing again gives another text");
    });
}

#[test]
fn deep_chains() {
    round_trip_deep(|f, x| {
        f.begin_dataflow();
        let mut last = x;
        for _ in 0..levels() {
            last = f.call_op("exp", &[last], &[])?;
            last = f.bind("", last);
        }
        f.end_dataflow(&[last]);
        Ok(last)
    });
}

#[test]
fn deep_calls() {
    round_trip_deep(|f, mut x| {
        for _ in 0..levels() {
            x = f.call_op("exp", &[x], &[])?;
        }
        Ok(x)
    });
}

#[test]
fn deep_shared_calls() {
    round_trip_deep(|f, mut x| {
        for _ in 0..levels() / 4 {
            x = f.call_op("add", &[x, x], &[])?;
        }
        Ok(x)
    });
}

#[test]
fn deep_branches() {
    round_trip_deep(|f, x| {
        let c = condition(f);
        let mut block = x;
        for _ in 0..levels() {
            block = f.if_(c, block, x)?;
        }
        Ok(block)
    });
}

#[test]
fn deep_branches_with_a_shared_node_at_the_bottom() {
    round_trip_deep(|f, x| {
        let c = condition(f);
        let shared = f.call_op("exp", &[x], &[])?;
        let mut block = f.call_op("add", &[shared, shared], &[])?;
        for i in 0..levels() / 4 {
            let other = if i % 1000 == 0 { shared } else { x };
            block = f.if_(c, block, other)?;
        }
        Ok(block)
    });
}

#[test]
fn deep_functions() {
    round_trip_deep(|f, x| {
        let ty = f.body().type_of(x);
        for _ in 0..levels() / 10 {
            f.open_lambda(&[("p", ty)], None, &[]);
        }
        let mut tail = x;
        for _ in 0..levels() / 10 {
            let lambda = f.close_lambda(tail)?;
            let lambda = f.bind("f", lambda);
            tail = f.call(lambda, &[x])?;
        }
        Ok(tail)
    });
}

#[test]
fn deep_blocks_as_values() {
    round_trip_deep(|f, x| {
        for _ in 0..levels() {
            f.open_block();
        }
        let mut value = x;
        for _ in 0..levels() {
            let v = f.bind("v", value);
            value = f.close_block(v)?;
        }
        Ok(f.bind("w", value))
    });
}
