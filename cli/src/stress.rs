//! `anfora stress`: every operation on every shape of program, on a small stack.
//!
//! A stack overflow ends a process, so the operations run in a child process, which prints a line
//! for each operation that it finishes. If the child ends early, the operation that it was running
//! did not survive, and another child goes on with the next operation.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anfora::ir::did_you_mean;
use anfora_testing::on_stack;
use anfora_testing::programs::Shape;
use anfora_testing::stress::{Operation, Subject};
use clap::Args;
use serde_json::{Value, json};

use crate::command_line::CommandLine;
use crate::generate::LARGEST_SIZE;
use crate::report::{Failure, say};

/// Runs every entry point and every registered pass over every shape of program, on a small stack.
#[derive(Args)]
pub(crate) struct Stress {
    /// The depth of the nests, and the length of the chains
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=LARGEST_SIZE))]
    depth: u64,
    /// The stack, in KiB
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(16..=1 << 20))]
    stack_kib: u64,
    /// Runs only these shapes
    #[arg(long = "shape", value_name = "SHAPE")]
    shapes: Vec<Shape>,
    /// Runs only these operations, or passes
    #[arg(long = "operation", value_name = "OPERATION")]
    operations: Vec<String>,
    /// Prints all figures, as JSON
    #[arg(long)]
    json: bool,
    /// Runs the operations on the given shape, and reports to the parent process
    #[arg(long, hide = true)]
    worker: bool,
}

/// The outcome of one operation on one shape.
struct Cell {
    operation: String,
    shape: &'static str,
    end: End,
}

enum End {
    Survived(Times),
    Failed(String),
}

/// Times in nanoseconds, on a program of a tenth of the size and on one of the full size.
#[derive(Copy, Clone)]
struct Times {
    small_size: u64,
    small: u64,
    size: u64,
    large: u64,
}

impl Times {
    fn per_binding(self) -> f64 {
        self.large as f64 / self.size as f64
    }
}

impl Stress {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let operations = self.chosen_operations(cli)?;
        if self.worker {
            return self.work(cli, &operations);
        }
        let shapes: Vec<Shape> = if self.shapes.is_empty() { Shape::all().collect() } else { self.shapes.clone() };
        let mut cells = Vec::new();
        for &shape in &shapes {
            if std::io::stderr().is_terminal() {
                say(&format!("{}: {}", shape.name(), shape.doc()));
            }
            // What depends on nothing but the depth runs once.
            let is_done = |operation: &&Operation| operation.needs_program() || shape == shapes[0];
            let of_shape: Vec<Operation> = operations.iter().filter(is_done).cloned().collect();
            let mut left = &of_shape[..];
            while !left.is_empty() {
                let finished = self.run_worker(cli, shape, left)?;
                left = &left[finished.len()..];
                cells.extend(finished);
            }
        }
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{:#}", to_json(&cells))?;
        } else {
            write!(out, "{}", table(&cells, &operations))?;
        }
        let failures: Vec<&Cell> = cells.iter().filter(|c| matches!(c.end, End::Failed(_))).collect();
        for cell in &failures {
            if let End::Failed(why) = &cell.end {
                say(&format!("error: {} on {}: {why}", cell.operation, cell.shape));
            }
        }
        let (what, depth, kib) = (cells.len(), self.depth, self.stack_kib);
        let of = format!("{what} pairs of an operation and a shape, {depth} deep, on a stack of {kib} KiB");
        if failures.is_empty() {
            say(&format!("{of}: all survive"));
            return Ok(());
        }
        Err(Failure::Message(format!("{of}: {} do not survive", failures.len())))
    }

    fn chosen_operations(&self, cli: &CommandLine) -> Result<Vec<Operation>, Failure> {
        let all = Operation::all_with(cli.pass_registry());
        if self.operations.is_empty() {
            return Ok(all);
        }
        let mut chosen = Vec::new();
        for name in &self.operations {
            match all.iter().find(|o| o.name() == name) {
                Some(operation) => chosen.push(operation.clone()),
                None => {
                    let near = did_you_mean(name, all.iter().map(Operation::name));
                    let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                    return Err(Failure::Usage(format!("there is no operation `{name}`{hint}")));
                }
            }
        }
        Ok(chosen)
    }

    /// Runs operations in a child process until it ends. Returns the outcomes of those that it
    /// reached, which is at least one.
    fn run_worker(&self, cli: &CommandLine, shape: Shape, operations: &[Operation]) -> Result<Vec<Cell>, Failure> {
        let cannot = |e: std::io::Error| Failure::Message(format!("cannot run a child process: {e}"));
        let mut command = cli.start_again().map_err(cannot)?;
        command.args(["stress", "--worker", "--shape", shape.name()]);
        command.args(["--depth", &self.depth.to_string(), "--stack-kib", &self.stack_kib.to_string()]);
        for operation in operations {
            command.args(["--operation", operation.name()]);
        }
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(cannot)?;
        let mut lines = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).lines() {
                lines.push(line.map_err(cannot)?);
            }
        }
        let mut complaint = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            // Output that is not text is ignored.
            let _ = stderr.read_to_string(&mut complaint);
        }
        let status = child.wait().map_err(cannot)?;
        let mut cells = finished(shape, &lines);
        if cells.len() < operations.len() {
            let why = ending(status, &complaint);
            cells.push(Cell {
                operation: operations[cells.len()].name().to_string(),
                shape: shape.name(),
                end: End::Failed(why),
            });
        }
        Ok(cells)
    }

    /// Runs the operations in the child process, and prints a line for each when it is finished.
    fn work(&self, cli: &CommandLine, operations: &[Operation]) -> Result<(), Failure> {
        let Some(&shape) = self.shapes.first() else {
            return Err(Failure::Usage("a worker needs a shape".to_string()));
        };
        let kib = self.stack_kib as usize;
        let no_thread = |e: std::io::Error| Failure::Message(format!("cannot start a thread: {e}"));
        let depth = self.depth as usize;
        let registry = Arc::clone(cli.op_registry());
        let subjects = on_stack(kib, move || {
            let large = Subject::new(shape, depth)?.with_operators(&registry)?;
            let small = Subject::new(shape, large.size().div_ceil(10))?.with_operators(&registry)?;
            Ok::<_, String>((Arc::new(small), Arc::new(large)))
        });
        let (small, large) = subjects.map_err(no_thread)?.map_err(Failure::Message)?;
        for operation in operations {
            let timed = |subject: &Arc<Subject>| {
                let (operation, subject) = (operation.clone(), Arc::clone(subject));
                on_stack(kib, move || {
                    let trial = operation.prepare(&subject)?;
                    let start = Instant::now();
                    trial.run()?;
                    Ok::<_, String>(start.elapsed().as_nanos() as u64)
                })
            };
            let small_time = timed(&small).map_err(no_thread)?;
            let large_time = timed(&large).map_err(no_thread)?;
            let mut out = std::io::stdout().lock();
            match (small_time, large_time) {
                (Ok(a), Ok(b)) => writeln!(out, "{}\t{}\t{a}\t{}\t{b}", operation.name(), small.size(), large.size())?,
                (Err(e), _) | (_, Err(e)) => {
                    writeln!(out, "{}\t{}", operation.name(), e.replace(['\n', '\t'], " "))?;
                }
            }
            out.flush()?;
        }
        Ok(())
    }
}

/// Returns the outcomes that the lines of a worker report.
fn finished(shape: Shape, lines: &[String]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for line in lines {
        let mut parts = line.split('\t');
        let operation = parts.next().unwrap_or_default().to_string();
        let rest: Vec<&str> = parts.collect();
        let numbers: Vec<u64> = rest.iter().filter_map(|p| p.parse().ok()).collect();
        let end = match numbers[..] {
            [small_size, small, size, large] => End::Survived(Times { small_size, small, size, large }),
            _ => End::Failed(rest.join(" ")),
        };
        cells.push(Cell { operation, shape: shape.name(), end });
    }
    cells
}

/// Returns the reason why a worker ended before it was done.
fn ending(status: ExitStatus, complaint: &str) -> String {
    if complaint.contains("overflowed its stack") {
        return "stack overflow".to_string();
    }
    match complaint.lines().find(|l| !l.trim().is_empty()) {
        Some(line) => format!("the process ended with {status}: {line}"),
        None => format!("the process ended with {status}"),
    }
}

/// Returns a table with a line for each operation: the time per binding on the median shape and on
/// the slowest shape, and the growth of the time per binding, over all shapes together, when
/// programs are ten times as large.
fn table(cells: &[Cell], operations: &[Operation]) -> String {
    let mut text = format!(
        "{:24} {:>9} {:>11} {:>11} {:>7}  {}\n",
        "operation", "survived", "ns/binding", "slowest", "growth", "slowest on"
    );
    for operation in operations {
        let of_operation: Vec<&Cell> = cells.iter().filter(|c| c.operation == operation.name()).collect();
        let mut times: Vec<(Times, &str)> = Vec::new();
        for cell in &of_operation {
            if let End::Survived(t) = cell.end {
                times.push((t, cell.shape));
            }
        }
        times.sort_by(|a, b| a.0.per_binding().total_cmp(&b.0.per_binding()));
        let survived = format!("{}/{}", times.len(), of_operation.len());
        text += &format!("{:24} {survived:>9}", operation.name());
        if let (Some((middle, _)), Some((slowest, shape))) = (times.get(times.len() / 2), times.last()) {
            text += &format!(
                " {:>11.1} {:>11.1} {:>6.2}x  {shape}",
                middle.per_binding(),
                slowest.per_binding(),
                growth(times.iter().map(|t| t.0))
            );
        }
        text.push('\n');
    }
    text
}

/// Returns the time per binding on the programs divided by the time per binding on programs of a
/// tenth of their size.
fn growth(times: impl Iterator<Item = Times>) -> f64 {
    let (mut small, mut large) = (0.0, 0.0);
    for t in times {
        small += t.small as f64 / t.small_size as f64;
        large += t.large as f64 / t.size as f64;
    }
    large / small
}

fn to_json(cells: &[Cell]) -> Value {
    let rows = cells.iter().map(|cell| match &cell.end {
        End::Survived(t) => json!({
            "operation": cell.operation, "shape": cell.shape, "survived": true, "size": t.size,
            "nanoseconds": t.large, "small_size": t.small_size, "small_nanoseconds": t.small,
        }),
        End::Failed(why) => {
            json!({ "operation": cell.operation, "shape": cell.shape, "survived": false, "why": why })
        }
    });
    Value::Array(rows.collect())
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::process::Command;

    use super::*;

    #[test]
    fn a_worker_that_ends_early_did_not_survive_what_it_began() {
        let shape: Shape = "chain".parse().expect("a shape");
        let lines = ["print\t10\t1000\t100\t20000".to_string(), "parse\tdoes not hold: this".to_string()];
        let cells = finished(shape, &lines);
        assert!(matches!(cells[0].end, End::Survived(t) if t.per_binding() == 200.0 && growth([t].into_iter()) == 2.0));
        assert!(matches!(&cells[1].end, End::Failed(why) if why == "does not hold: this"));
    }

    #[cfg(unix)]
    #[test]
    fn the_end_of_a_worker_is_told() {
        let killed = |script: &str| Command::new("sh").args(["-c", script]).status().expect("a shell");
        assert!(ending(killed("kill -SEGV $$"), "").contains("signal"));
        assert_eq!(ending(killed("kill -ABRT $$"), "\nthread 'x' has overflowed its stack\n"), "stack overflow");
        assert!(ending(killed("exit 3"), "\nout of paper").ends_with("3: out of paper"));
    }

    #[test]
    fn the_table_counts_what_survived() {
        let operations: Vec<Operation> = Operation::all().into_iter().filter(|o| o.name() == "print").collect();
        let times = Times { small_size: 10, small: 100, size: 100, large: 1500 };
        let cell = |shape, end| Cell { operation: "print".to_string(), shape, end };
        let cells = [cell("chain", End::Survived(times)), cell("dead", End::Failed("stack overflow".to_string()))];
        let text = table(&cells, &operations);
        let row = text.lines().nth(1).expect("a line for the operation");
        assert!(row.contains(" 1/2 ") && row.contains(" 15.0 ") && row.contains("1.50x  chain"), "{row}");
        assert_eq!(to_json(&cells)[1]["why"], "stack overflow");
    }
}
