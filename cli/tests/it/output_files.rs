//! Files that are written: whole or not at all, through links, and with the mode that they had.

use std::fs;
use std::path::Path;

use crate::program::{Scratch, anfora, ends, with_input};

const PROGRAM: &str = "def @main(%x: Tensor[(3,), float32]) { add(%x, dense<Tensor[(3,), float32]>[1, 2, 3]) }";

/// Returns the names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().expect("names are in UTF-8")).collect();
    names.sort();
    names
}

#[cfg(unix)]
mod unix {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::{Command, Stdio};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a file").permissions().mode() & 0o7777
    }

    /// Writes each kind of output in a folder, and returns their names.
    fn write_all_outputs(dir: &Scratch) -> Vec<&'static str> {
        let program = dir.file("in.anf", PROGRAM);
        for output in ["out.anf", "out.onnx"] {
            ends(anfora(&["opt", &program, "--quiet", "--trace", &dir.path("trace"), "-o", &dir.path(output)]), 0);
        }
        ends(anfora(&["convert", &program, "--external-data=1", "-o", &dir.path("with.onnx")]), 0);
        ends(anfora(&["gen", "chain", "3", "-o", &dir.path("gen.anf")]), 0);
        ends(anfora(&["run", &program, "-o", &dir.path("")]), 0);
        let failing = ["opt", &program, "--passes", "BindParams{function=nobody}", "--reproducer", &dir.path("left")];
        ends(anfora(&failing), 1);
        vec!["out.anf", "out.onnx", "trace", "with.onnx", "with.onnx.data", "gen.anf", "output_0.npy", "left"]
    }

    #[test]
    fn a_file_that_is_overwritten_keeps_its_mode() {
        let dir = Scratch::new("mode");
        for name in write_all_outputs(&dir) {
            let path = dir.join(name);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        for name in write_all_outputs(&dir) {
            assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
        }
        let wide = dir.join("out.anf");
        fs::set_permissions(&wide, fs::Permissions::from_mode(0o666)).unwrap();
        write_all_outputs(&dir);
        assert_eq!(mode(&wide), 0o666, "whatever the umask");
    }

    #[test]
    fn a_link_is_followed() {
        let (dir, other) = (Scratch::new("links"), Scratch::new("linked"));
        let mut names_of_outputs = write_all_outputs(&dir);
        // A model with a data file has tests of its own.
        names_of_outputs.retain(|name| !name.starts_with("with.onnx"));
        let mut expected = Vec::new();
        for name in &names_of_outputs {
            let path = dir.join(name);
            expected.push(fs::read(&path).unwrap());
            fs::remove_file(&path).unwrap();
            // A link to a link in another folder, which leads to an existing file.
            symlink(other.join(format!("{name}.link")), &path).unwrap();
            symlink(format!("{name}.target"), other.join(format!("{name}.link"))).unwrap();
            let old: &[u8] = if *name == "left" { b"" } else { b"old" };
            fs::write(other.join(format!("{name}.target")), old).unwrap();
        }
        write_all_outputs(&dir);
        for (name, expected) in names_of_outputs.iter().zip(&expected) {
            assert!(dir.join(name).is_symlink() && other.join(format!("{name}.link")).is_symlink(), "{name}");
            let found = fs::read(other.join(format!("{name}.target"))).unwrap();
            // Times differ from run to run.
            assert!(*name == "trace" && found != b"old" || found == *expected, "{name}");
        }
    }

    /// Asserts that a model has the weights `[7, 8, 9]`.
    fn assert_has_new_weights(model: &str) {
        let (out, _) = ends(anfora(&["convert", model]), 0);
        assert!(out.contains("[7, 8, 9]"), "{model}: {out}");
    }

    #[test]
    fn weights_are_read_from_beside_the_link_and_then_from_beside_the_model() {
        let dir = Scratch::new("linked-model");
        let program = dir.file("in.anf", &PROGRAM.replace("[1, 2, 3]", "[7, 8, 9]"));
        ends(anfora(&["convert", &program, "--external-data=1", "-o", &dir.path("m.onnx")]), 0);
        let [model, data] = ["m.onnx", "m.onnx.data"].map(|name| fs::read(dir.join(name)).unwrap());
        // A cache may keep models under other names, or under their own.
        for (case, [model_at, data_at]) in [["aaa", "bbb"], ["m.onnx", "m.onnx.data"]].into_iter().enumerate() {
            for is_data_linked in [false, true] {
                let folder = format!("{case}{is_data_linked}");
                let [blobs, snap] = ["blobs", "snap"].map(|part| dir.join(format!("{folder}/{part}")));
                fs::create_dir_all(&blobs).unwrap();
                fs::create_dir_all(&snap).unwrap();
                fs::write(blobs.join(model_at), &model).unwrap();
                symlink(Path::new("../blobs").join(model_at), snap.join("m.onnx")).unwrap();
                if is_data_linked {
                    fs::write(blobs.join(data_at), &data).unwrap();
                    symlink(Path::new("../blobs").join(data_at), snap.join("m.onnx.data")).unwrap();
                } else {
                    fs::write(snap.join("m.onnx.data"), &data).unwrap();
                }
                assert_has_new_weights(&dir.path(&format!("{folder}/snap/m.onnx")));
                if data_at == "m.onnx.data" && is_data_linked {
                    fs::remove_file(snap.join("m.onnx.data")).unwrap();
                    assert_has_new_weights(&dir.path(&format!("{folder}/snap/m.onnx")));
                    // The data file beside the link comes first.
                    fs::write(snap.join("m.onnx.data"), [0; 12]).unwrap();
                    let (out, _) = ends(anfora(&["convert", &dir.path(&format!("{folder}/snap/m.onnx"))]), 0);
                    assert!(!out.contains("[7, 8, 9]"), "{out}");
                }
            }
        }
        // A data file that is a link out of the folder is refused.
        fs::write(dir.join("secret"), &data).unwrap();
        fs::remove_file(dir.join("0true/snap/m.onnx.data")).unwrap();
        symlink("../../secret", dir.join("0true/snap/m.onnx.data")).unwrap();
        let (_, err) = ends(anfora(&["convert", &dir.path("0true/snap/m.onnx")]), 1);
        assert!(err.contains("leads out"), "{err}");
    }

    #[test]
    fn weights_are_written_beside_the_link() {
        let dir = Scratch::new("written-link");
        fs::create_dir(dir.join("store")).unwrap();
        let new = dir.file("new.anf", &PROGRAM.replace("[1, 2, 3]", "[7, 8, 9]"));
        let link = dir.path("m.onnx");
        symlink("store/target.onnx", &link).unwrap();
        // The link may exist before the model does.
        for _ in 0..2 {
            let (_, err) = ends(anfora(&["opt", &new, "--external-data=1", "-o", &link]), 0);
            assert!(err.contains(&format!("wrote {}", dir.path("m.onnx.data"))), "{err}");
            assert!(Path::new(&link).is_symlink());
            assert_has_new_weights(&link);
            assert_eq!(names(&dir), ["m.onnx", "m.onnx.data", "new.anf", "store"]);
            assert_eq!(names(&dir.join("store")), ["target.onnx"]);
        }
    }

    #[test]
    fn old_weights_behind_a_link_are_not_left_to_a_new_model() {
        let dir = Scratch::new("old-weights");
        fs::create_dir(dir.join("store")).unwrap();
        let old = dir.file("old.anf", PROGRAM);
        let new = dir.file("new.anf", &PROGRAM.replace("[1, 2, 3]", "[7, 8, 9]"));
        let target = dir.path("store/m.onnx");
        ends(anfora(&["convert", &old, "--external-data=1", "-o", &target]), 0);
        symlink("store/m.onnx", dir.join("m.onnx")).unwrap();
        let (_, err) = ends(anfora(&["convert", &new, "--external-data=1", "-o", &dir.path("m.onnx")]), 1);
        assert!(err.contains("m.onnx.data holds the weights"), "{err}");
        let (out, _) = ends(anfora(&["convert", &target]), 0);
        assert!(out.contains("[1, 2, 3]"), "{out}");
        // The model is written if it has no data file, or if its data file is in the same place.
        ends(anfora(&["convert", &new, "-o", &dir.path("m.onnx")]), 0);
        symlink("store/m.onnx.data", dir.join("m.onnx.data")).unwrap();
        ends(anfora(&["convert", &new, "--external-data=1", "-o", &dir.path("m.onnx")]), 0);
        let (out, _) = ends(anfora(&["convert", &target]), 0);
        assert!(out.contains("[7, 8, 9]"), "{out}");
    }

    #[test]
    fn a_data_file_that_is_a_link_is_followed() {
        let dir = Scratch::new("linked-data");
        let program = dir.file("in.anf", PROGRAM);
        fs::create_dir(dir.join("store")).unwrap();
        symlink("store/weights", dir.join("m.onnx.data")).unwrap();
        ends(anfora(&["convert", &program, "--external-data=1", "-o", &dir.path("m.onnx")]), 0);
        assert!(dir.join("m.onnx.data").is_symlink());
        let (out, _) = ends(anfora(&["convert", &dir.path("m.onnx")]), 0);
        assert!(out.contains("[1, 2, 3]"), "{out}");
    }

    /// `/proc` is a folder in which nobody can create a file, not even root.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_output_in_a_folder_that_cannot_be_written_is_an_error() {
        let dir = Scratch::new("unwritable");
        let program = dir.file("in.anf", PROGRAM);
        let commands: [&[&str]; 9] = [
            &["convert", &program, "-o", "/proc/out.anf"],
            &["convert", &program, "-o", "/proc/out.onnx"],
            &["convert", &program, "--external-data=1", "-o", "/proc/out.onnx"],
            &["opt", &program, "-o", "/proc/out.anf"],
            &["opt", &program, "--emit", "none", "--trace", "/proc/out.json"],
            &["opt", &program, "--emit", "none", "--dump-dir", "/proc/out"],
            &["opt", &program, "--emit", "none", "--reproducer", "/proc/out.anf"],
            &["gen", "chain", "3", "-o", "/proc/out.anf"],
            &["run", &program, "-o", "/proc/out"],
        ];
        for command in commands {
            let (out, err) = ends(anfora(command), 1);
            assert!(command[0] == "run" || out.is_empty(), "{command:?}: {out}");
            assert!(err.contains("error: ") && err.contains("/proc"), "{command:?}: {err}");
            assert!(!err.contains("wrote"), "{command:?}: {err}");
        }
        assert_eq!(names(&dir), ["in.anf"]);
    }

    #[test]
    fn where_a_link_leads_nowhere_the_file_is_created() {
        let dir = Scratch::new("dangling");
        let program = dir.file("in.anf", PROGRAM);
        fs::create_dir(dir.join("folder")).unwrap();
        symlink("folder/../there.anf", dir.join("link.anf")).unwrap();
        ends(anfora(&["convert", &program, "-o", &dir.path("link.anf")]), 0);
        assert!(dir.join("link.anf").is_symlink() && fs::read_to_string(dir.join("there.anf")).unwrap().len() > 10);

        symlink("b.anf", dir.join("a.anf")).unwrap();
        symlink("a.anf", dir.join("b.anf")).unwrap();
        let (_, err) = ends(anfora(&["convert", &program, "-o", &dir.path("a.anf")]), 1);
        assert!(err.contains("cannot write") && err.contains("symbolic links"), "{err}");
        symlink("nowhere/c.anf", dir.join("c.anf")).unwrap();
        let (_, err) = ends(anfora(&["convert", &program, "-o", &dir.path("c.anf")]), 1);
        assert!(err.contains("cannot write"), "{err}");
        assert_eq!(names(&dir), ["a.anf", "b.anf", "c.anf", "folder", "in.anf", "link.anf", "there.anf"]);
    }

    #[test]
    fn what_is_redirected_is_not_replaced() {
        let dir = Scratch::new("redirected");
        let program = dir.file("in.anf", PROGRAM);
        let script = format!("echo first; $0 convert {program} -o /dev/stdout; echo last");
        let out = fs::File::create(dir.join("out")).unwrap();
        let status = Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_anfora")]).stdout(out).status();
        assert!(status.unwrap().success());
        let text = fs::read_to_string(dir.join("out")).unwrap();
        assert!(text.starts_with("first\ndef @main") && text.ends_with("last\n"), "{text}");
    }

    #[test]
    fn a_pipe_is_written_as_it_is() {
        let dir = Scratch::new("pipe");
        let (program, pipe) = (dir.file("in.anf", PROGRAM), dir.path("pipe.anf"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        ends(anfora(&["convert", &program, "-o", &pipe]), 0);
        assert!(reader.join().unwrap().starts_with("def @main"));
        assert_eq!(names(&dir), ["in.anf", "pipe.anf"]);
    }

    #[test]
    fn a_file_larger_than_files_may_be_is_an_error() {
        let dir = Scratch::new("file-size");
        let program = dir.file("large.anf", "def @main() { dense<Tensor[(100000,), float32]>[1] }");
        let output = dir.path("out");
        fs::create_dir_all(&output).unwrap();
        fs::write(dir.join("out/output_0.npy"), "old").unwrap();
        // The limit is in blocks of 512 or 1024 bytes, so it is less than the 400,000 bytes of the
        // output.
        let script = "ulimit -c 0; ulimit -f 100; exec \"$@\"";
        let run = Command::new("sh")
            .args(["-c", script, "sh", env!("CARGO_BIN_EXE_anfora"), "run", &program, "-o", &output])
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{}: {said}", run.status);
        assert!(said.contains("cannot write") && said.contains("output_0.npy"), "{said}");
        assert_eq!(fs::read_to_string(dir.join("out/output_0.npy")).unwrap(), "old");
        assert_eq!(names(Path::new(&output)), ["output_0.npy"]);
    }

    /// The unit tests of `signals.rs` check what the handlers do.
    #[cfg(target_os = "linux")]
    #[test]
    fn signals_are_caught_from_the_beginning() {
        let dir = Scratch::new("caught");
        let pipe = dir.path("in.anf");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut child = Command::new(env!("CARGO_BIN_EXE_anfora"))
            .args(["check", &pipe])
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        // Opening the pipe waits until the program opens its input. The program reads until this
        // end is closed.
        let mut input = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        // Bit n - 1 of a mask is for signal n.
        let mask = |process: &str, name: &str| -> u64 {
            let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux says so");
            u64::from_str_radix(mask.trim(), 16).unwrap()
        };
        // SIGHUP, SIGINT, SIGQUIT and SIGTERM, except those that this test was started to ignore.
        let all = [1, 2, 3, 15].iter().fold(0, |mask, signal| mask | 1 << (signal - 1));
        let wanted = all & !mask("self", "SigIgn:");
        assert_eq!(mask(&child.id().to_string(), "SigCgt:") & wanted, wanted);
        input.write_all(PROGRAM.as_bytes()).unwrap();
        drop(input);
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn a_small_stack_of_the_main_thread_does_not_matter() {
        let dir = Scratch::new("stack");
        let program = dir.file("in.anf", PROGRAM);
        // The stack of a process begins at a random address, so the program runs several times.
        let script = "ulimit -s 64; i=0; while [ $i -lt 50 ]; do \"$@\" > /dev/null || exit 9; i=$((i + 1)); done";
        for arguments in [&["opt", "--help"][..], &["opt", &program, "--quiet"], &["frobnicate", "--help"]] {
            let run = Command::new("sh")
                .args(["-c", script, "sh", env!("CARGO_BIN_EXE_anfora")])
                .args(arguments)
                .output()
                .expect("a shell");
            let said = String::from_utf8_lossy(&run.stderr);
            let expected = if arguments[0] == "frobnicate" { Some(9) } else { Some(0) };
            assert_eq!(run.status.code(), expected, "{arguments:?}: {said}");
            assert!(!said.contains("overflow"), "{said}");
        }
    }

    #[test]
    fn output_that_cannot_be_written_is_an_error() {
        let dir = Scratch::new("full");
        let (program, other) = (dir.file("in.anf", PROGRAM), dir.file("other.anf", "def @main() { 1 }"));
        let stress = ["stress", "--depth", "10", "--shape", "chain", "--operation", "print"];
        let commands: [&[&str]; 16] = [
            &["--help"],
            &["--version"],
            &["help", "opt"],
            &["opt", "--help"],
            &["passes"],
            &["ops", "--json"],
            &["onnx-ops"],
            &["configs"],
            &["pipelines"],
            &["check", &program],
            &["opt", &program],
            &["convert", &program],
            &["run", &program],
            &["diff", &program, &other],
            &["gen", "chain", "3"],
            &stress,
        ];
        for command in commands {
            // A device of Linux that is always full.
            #[cfg(target_os = "linux")]
            {
                let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a device that is full");
                let output = Command::new(env!("CARGO_BIN_EXE_anfora")).args(command).stdout(full).output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
                assert!(said.contains("cannot write the result: No space left"), "{command:?}: {said}");
            }

            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            let output = Command::new(env!("CARGO_BIN_EXE_anfora")).args(command).stdout(writer).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{command:?}: {said}");
            assert!(!said.contains("cannot write"), "{command:?}: {said}");
        }
    }
}

#[test]
fn a_folder_is_no_output_and_nothing_is_left_of_what_fails() {
    let dir = Scratch::new("folders");
    let program = dir.file("in.anf", PROGRAM);
    fs::create_dir(dir.join("folder.anf")).unwrap();
    for output in ["folder.anf", "missing/out.anf", "in.anf/out.anf", "new.anf/"] {
        let (_, err) = ends(anfora(&["convert", &program, "-o", &dir.path(output)]), 1);
        assert!(err.contains("cannot write") && err.contains(output), "{output}: {err}");
    }
    // If the model or its data file cannot be written, neither is.
    fs::create_dir(dir.join("folder.onnx")).unwrap();
    let convert = ["convert", &program, "--external-data=1", "-o"];
    ends(anfora(&[&convert[..], &[&dir.path("folder.onnx")]].concat()), 2);
    fs::create_dir(dir.join("model.onnx.data")).unwrap();
    let (_, err) = ends(anfora(&[&convert[..], &[&dir.path("model.onnx")]].concat()), 1);
    assert!(err.contains("model.onnx.data"), "{err}");
    assert_eq!(names(&dir), ["folder.anf", "folder.onnx", "in.anf", "model.onnx.data"]);
}

#[test]
fn the_output_may_be_the_input_and_have_a_long_name() {
    let dir = Scratch::new("same");
    let path = dir.file(&format!("{}.anf", "n".repeat(251)), PROGRAM);
    ends(anfora(&["convert", &path, "-o", &path]), 0);
    assert!(fs::read_to_string(&path).unwrap().contains("-> Tensor[(3,), float32]"));
    let model = dir.path("m.onnx");
    ends(anfora(&["convert", &path, "--external-data=1", "-o", &model]), 0);
    ends(anfora(&["opt", &model, "--external-data=1", "--quiet", "-o", &model]), 0);
    let (out, _) = ends(anfora(&["convert", &model]), 0);
    assert!(out.contains("[1, 2, 3]"), "{out}");
}

#[test]
fn one_program_comes_from_standard_input() {
    let (_, err) = ends(with_input(&["diff", "-", "-"], "def @main() { 1 }"), 2);
    assert!(err.contains("standard input has one program"), "{err}");
    for arguments in
        [&["opt", "-", "--reproducer", "-"][..], &["opt", "-", "--dump-dir", "-"], &["run", "-", "-o", "-"]]
    {
        let (_, err) = ends(with_input(arguments, "def @main() { 1 }"), 2);
        assert!(err.contains("standard output; give a"), "{err}");
    }
}

#[test]
fn two_results_do_not_go_to_standard_output() {
    let dir = Scratch::new("both");
    let program = dir.file("in.anf", PROGRAM);
    for (trace, output) in [
        (&["--trace", "-"][..], &[][..]),
        (&["--trace", "-"], &["-o", "-"]),
        (&["--trace", "/dev/stdout"], &["-o", "-"]),
        (&["--trace", "-"], &["-o", "/dev/stdout"]),
    ] {
        let arguments = [&["opt", &program, "--quiet"], trace, output].concat();
        let (out, err) = ends(anfora(&arguments), 2);
        assert_eq!(out, "", "{arguments:?}");
        assert!(err.contains("--trace") && err.contains("goes to standard output too"), "{arguments:?}: {err}");
    }
    for (arguments, written) in [(["--emit", "none"], None), (["-o", &dir.path("out.anf")], Some("out.anf"))] {
        let trace = [&["opt", &program, "--quiet", "--trace", "-"], &arguments[..]].concat();
        let (out, _) = ends(anfora(&trace), 0);
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
        assert!(written.is_none_or(|name| dir.join(name).exists()));
    }
    let (out, _) = ends(anfora(&["opt", &program, "--quiet", "--trace", &dir.path("trace")]), 0);
    assert!(out.starts_with("def @main"), "{out}");
}
