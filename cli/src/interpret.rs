//! `anfora run`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anfora::interp::{
    ArgumentGenerator, Arguments, EvalError, EvalErrorKind, Interpreter, Limits, Value, ValueId, Values, digest,
};
use anfora::ir::{Diagnostic, Function, Literal, Module, did_you_mean};
use anfora::onnx::UnsupportedNodes;
use anfora::passes::{self, MemoryOptions, PlannedMemory, plan_memory};
use clap::Args;
use rustc_hash::FxHashMap;

use crate::by_name::ByName;
use crate::command_line::CommandLine;
use crate::dims;
use crate::file::{self, Format, Loaded, cannot_write};
use crate::report::{self, Failure};

/// Interprets a program and prints shape, element type and a digest of each output.
#[derive(Args)]
pub(crate) struct Run {
    /// The program: a `.anf` or `.onnx` file, or `-`
    program: PathBuf,
    /// The format of the program
    #[arg(long)]
    from: Option<Format>,
    /// An input by its name: a `.npy` file, or a tensor in an ONNX `.pb` file
    #[arg(long, value_name = "NAME=FILE")]
    input: Vec<String>,
    /// The seed of the random values of all other inputs
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    random: u64,
    /// The extent of a symbolic dimension of the inputs; the given tensors determine the extents of
    /// their own dimensions, and all others are 2
    #[arg(long = "dim", value_name = "NAME=EXTENT")]
    dims: Vec<String>,
    /// The function to run
    #[arg(long, default_value = "@main")]
    entry: String,
    /// Runs in one buffer, with each value at the offset that `plan` gives it, and fails if a value
    /// that is needed has been overwritten
    #[arg(long)]
    in_plan: bool,
    /// A folder for the outputs: output_0.npy, output_1.npy and so on
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// At most this many outputs are shown and saved. A value may share its parts so often that writing
/// all of them out would not end.
const MOST_OUTPUTS: usize = 10_000;

impl Run {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let dims = dims::parse("--dim", &self.dims)?;
        if self.output.as_deref() == Some(Path::new("-")) {
            return Err(Failure::Usage(
                "--output -: this cannot be written to standard output; give a folder".to_string(),
            ));
        }
        let Loaded { module, kept, .. } = file::load(cli, &self.program, self.from)?;
        if let Err(errors) = anfora::ir::verify_module(&module) {
            return Err(Failure::in_module(&errors, &module));
        }
        let entry = self.entry.trim_start_matches('@');
        let Some(function) = module.find(entry).and_then(|k| module.get(k)).filter(|f| f.is_definition()) else {
            let names = module.order().iter().map(|&k| module.name(k));
            let help = did_you_mean(entry, names).map(|n| format!("; did you mean `@{n}`?")).unwrap_or_default();
            return Err(Failure::Message(format!("the program has no function `@{entry}`{help}")));
        };
        let dims = dims::in_module("--dim", &dims, &module)?;
        let arguments = self.arguments(&dims, &module, function)?;
        let interpreter = Interpreter::new(&module).seed(self.random);
        let outcome = if self.in_plan {
            let plan = plan_memory(&module, &MemoryOptions::default());
            let plan = plan.map_err(|e| Failure::Message(format!("the memory cannot be planned: {}", e.message())))?;
            let mut memory = PlannedMemory::new(&module, &plan);
            let outcome = interpreter.call_mirrored(entry, arguments.values, &arguments.list, &mut memory);
            report::say(&format!("ran in a buffer of {} bytes", memory.bytes()));
            outcome
        } else {
            interpreter.call(entry, arguments.values, &arguments.list)
        };
        let outcome = outcome.map_err(|e| Failure::in_module(&[explained(cli, &e, &kept)], &module))?;
        let mut out = std::io::stdout().lock();
        for effect in &outcome.trace {
            let operands: Vec<String> = effect.operands.iter().map(|&o| outcome.values.text(o, 200)).collect();
            writeln!(out, "{}({}) {}", effect.op, operands.join(", "), effect.text)?;
        }
        let outputs = outputs_of(&outcome.values, outcome.result);
        for (i, output) in outputs.iter().enumerate() {
            match outcome.values.as_tensor(*output) {
                Some(t) => writeln!(out, "output {i}: {} {:?} {}", t.dtype(), t.shape(), digest(t))?,
                None => writeln!(out, "output {i}: {}", outcome.values.text(*output, 200))?,
            }
        }
        if let Some(dir) = &self.output {
            for (i, &output) in outputs.iter().enumerate() {
                outcome.values.as_tensor(output).map_or(Ok(()), |tensor| check_size(i, tensor))?;
            }
            std::fs::create_dir_all(dir).map_err(|e| cannot_write(dir, &e))?;
            for (i, output) in outputs.iter().enumerate() {
                if let Some(tensor) = outcome.values.as_tensor(*output) {
                    save(dir, i, tensor)?;
                } else {
                    report::say(&format!("output {i} is not a tensor and was not saved"));
                }
            }
        }
        Ok(())
    }

    /// Returns the arguments of the function: the given inputs, and random values for the others.
    fn arguments(&self, dims: &[(String, usize)], module: &Module, function: &Function) -> Result<Arguments, Failure> {
        let inputs = self.read_inputs(module, function)?;
        dims::check(dims, module, function, &inputs)?;
        // Drawn arguments take at most a quarter of the memory and leave the rest to the
        // computation.
        let draw = ArgumentGenerator::new(self.random).most_bytes(Limits::default().bytes / 4);
        let draw = dims.iter().fold(draw, |draw, (name, extent)| draw.dim(name, *extent));
        let draw = inputs.into_iter().fold(draw, |draw, (i, tensor)| draw.given(i, tensor));
        draw.arguments(&module.cx, function)
            .map_err(|e| Failure::Message(format!("{e}; give it with --input {}=FILE", e.parameter)))
    }

    /// Reads the given inputs and returns them by the index of their parameter.
    fn read_inputs(&self, module: &Module, function: &Function) -> Result<FxHashMap<usize, Literal>, Failure> {
        let names: Vec<&str> = function
            .body
            .params()
            .iter()
            .map(|&p| function.body.var_name(p).map_or("", |n| module.cx.names.get(n)))
            .collect();
        let by_name: ByName<'_, usize> = names.iter().enumerate().map(|(i, name)| (*name, i)).collect();
        let mut inputs = FxHashMap::default();
        for given in &self.input {
            let Some((name, path)) = given.split_once('=') else {
                return Err(Failure::Usage(format!("--input {given}: write it as NAME=FILE")));
            };
            let name = name.trim_start_matches('%');
            let Some(&i) = by_name.get(name) else {
                let help = match did_you_mean(name, names.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its inputs are {}", names.join(", ")),
                };
                return Err(Failure::Message(format!("the function has no input `{name}`; {help}")));
            };
            let literal = read_tensor(Path::new(path)).map_err(|e| Failure::Message(format!("{path}: {e}")))?;
            inputs.insert(i, literal);
        }
        Ok(inputs)
    }
}

/// Returns the diagnostic of an error of the interpreter. For an operator without a kernel, it says
/// why the import kept the node.
fn explained(cli: &CommandLine, error: &EvalError, kept: &[UnsupportedNodes]) -> Diagnostic {
    /// The number of reasons that are shown. The command `check` lists the others.
    const MOST_REASONS: usize = 3;
    let diagnostic = error.diagnostic();
    let EvalErrorKind::NoKernel(name) = &error.kind else { return diagnostic };
    let reasons: Vec<&UnsupportedNodes> = kept.iter().filter(|k| k.are_calls_of(name)).collect();
    let is_first = |k: &&&UnsupportedNodes| error.binding.as_ref().is_some_and(|b| *b == k.first);
    let reasons = match reasons.iter().find(is_first) {
        Some(&reason) => vec![reason],
        None => reasons,
    };
    if reasons.is_empty() {
        return match name.starts_with("onnx.") {
            true => diagnostic.with_help(format!(
                "`{} check` on the ONNX file that the program comes from says why the node was kept",
                cli.name()
            )),
            false => diagnostic,
        };
    }
    let mut help: Vec<String> = reasons.iter().take(MOST_REASONS).map(|k| format!("the import kept {k}")).collect();
    if reasons.len() > MOST_REASONS {
        help.push(format!("`{} check` lists the others", cli.name()));
    }
    diagnostic.with_help(help.join("; "))
}

/// Returns the fields of a result that is a tuple, with the fields of nested tuples in order, or
/// the result itself. Returns at most [`MOST_OUTPUTS`] of them.
fn outputs_of(values: &Values, result: ValueId) -> Vec<ValueId> {
    let mut outputs = Vec::new();
    let mut stack = vec![result];
    while let Some(id) = stack.pop() {
        match values.get(id) {
            Value::Tuple(fields) => stack.extend(fields.iter().rev()),
            _ => outputs.push(id),
        }
        if outputs.len() == MOST_OUTPUTS && !stack.is_empty() {
            report::say(&format!("the result has more than {MOST_OUTPUTS} parts; the others are left out"));
            break;
        }
    }
    outputs
}

fn read_tensor(path: &Path) -> Result<Literal, String> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("npy") => passes::read_npy(path).map_err(|e| e.to_string()),
        Some("pb") => {
            let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
            anfora::onnx::read_tensor(bytes.into()).map_err(|e| e.to_string())
        }
        _ => Err("inputs are .npy files or ONNX .pb files".to_string()),
    }
}

/// Returns an error if a splat, with all of its elements written out, is larger than the memory
/// that a program may use.
fn check_size(i: usize, tensor: &Literal) -> Result<(), Failure> {
    let limit = Limits::default().bytes;
    if tensor.as_splat().is_none() || tensor.expanded_bytes().is_some_and(|bytes| bytes <= limit) {
        return Ok(());
    }
    let (dtype, shape, gib) = (tensor.dtype(), tensor.shape(), limit >> 30);
    Err(Failure::Message(format!(
        "output {i}, {dtype} {shape:?}, is one number so often that it is more than {gib} GiB in a file; run without --output"
    )))
}

fn save(dir: &Path, i: usize, tensor: &Literal) -> Result<(), Failure> {
    if passes::has_npy_type(tensor.dtype()) {
        let path = dir.join(format!("output_{i}.npy"));
        let write = |out: &mut dyn Write| passes::write_npy(out, tensor).map_err(io::Error::other);
        return file::write_file(&path, write);
    }
    // NumPy lacks this element type; ONNX has it.
    let path = dir.join(format!("output_{i}.pb"));
    let bytes = anfora::onnx::write_tensor(tensor).map_err(|e| cannot_write(&path, &e))?;
    file::write_file(&path, |out| out.write_all(&bytes))
}

#[cfg(test)]
mod tests {
    use anfora::ir::{Source, parse_module, work};

    use super::*;
    use crate::by_name::comparisons;

    /// Runs a program with `n` parameters. Each has a symbolic dimension of its own that is given
    /// an extent, and every other parameter is given a tensor. Returns the number of accesses to
    /// the program and the number of comparisons of names.
    fn counted(n: usize, file: &Path) -> (u64, usize) {
        let each = |f: &dyn Fn(usize) -> String, between: &str| (0..n).map(f).collect::<Vec<_>>().join(between);
        let params = each(&|i| format!("%x{i}: Tensor[(n{i},), float32]"), ", ");
        let text = format!("def @main({params}) {{ ({},) }}", each(&|i| format!("%x{i}"), ", "));
        let module = parse_module(Source::new("test", text), anfora::onnx::registry()).expect("a program");
        let function = module.get(module.find("main").expect("it is there")).expect("it is there");
        let run = Run {
            program: PathBuf::from("-"),
            from: None,
            input: (0..n).step_by(2).map(|i| format!("x{i}={}", file.display())).collect(),
            random: 0,
            dims: (0..n).map(|i| format!("n{i}=3")).collect(),
            entry: "@main".to_string(),
            in_plan: false,
            output: None,
        };
        let (work_before, comparisons_before) = (work::count(), comparisons::counted());
        let dims = dims::parse("--dim", &run.dims).expect("extents");
        let dims = dims::in_module("--dim", &dims, &module).expect("each has one");
        let arguments = run.arguments(&dims, &module, function).expect("inputs that fit");
        let outcome = Interpreter::new(&module).call("main", arguments.values, &arguments.list).expect("a result");
        let outputs = outputs_of(&outcome.values, outcome.result);
        assert_eq!(outputs.len(), n);
        assert!(outputs.iter().all(|&o| outcome.values.as_tensor(o).is_some_and(|t| t.shape() == [3])));
        (work::count() - work_before, comparisons::counted() - comparisons_before)
    }

    #[test]
    fn work_a_symbolic_dimension_does_not_grow_with_their_number() {
        let file = std::env::temp_dir().join(format!("anfora-run-{}.npy", std::process::id()));
        let tensor = Literal::from_elements(&[3], &[1.0f32, 2.0, 3.0]).expect("three elements");
        passes::write_npy(&mut std::fs::File::create(&file).expect("a file"), &tensor).expect("it can be written");
        let (small, large) = (counted(250, &file), counted(2000, &file));
        let _ = std::fs::remove_file(&file);
        assert!(small.0 > 250 && small.1 > 250, "both are counted: {small:?}");
        let grows = |small: f64, large: f64| large > small * 8.0 * 1.2;
        assert!(!grows(small.0 as f64, large.0 as f64), "accesses of 250 and of 2000: {} and {}", small.0, large.0);
        assert!(!grows(small.1 as f64, large.1 as f64), "comparisons of 250 and of 2000: {} and {}", small.1, large.1);
    }
}
