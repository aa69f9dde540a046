//! Models. A file that is read gives a well-formed module. The exported file can be read and
//! exported again, with the same number of nodes. The bytes of the second export may differ: a
//! constant that a subgraph returns gets another name, and may be written a second time.

#![no_main]

use anfora::ir::verify_module;
use anfora::onnx::{ExportOptions, ImportOptions, UnknownFields, export, import};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    for unknown_fields in [UnknownFields::Refuse, UnknownFields::Drop] {
        let options = ImportOptions { unknown_fields, ..ImportOptions::default() };
        let Ok(imported) = import(file.to_vec().into(), &options) else { continue };
        let module = imported.module;
        if let Err(errors) = verify_module(&module) {
            panic!("{}\n{module}", errors[0]);
        }
        let Ok(written) = export(&module, &ExportOptions::default()) else { continue };
        let again = import(written.bytes.into(), &options)
            .unwrap_or_else(|error| panic!("what is written can be read: {error}\n{module}"));
        let twice = export(&again.module, &ExportOptions::default()).expect("what was written can be written");
        assert_eq!(twice.nodes, written.nodes, "{module}");
    }
});
