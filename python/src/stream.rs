//! The streams of Python, for what passes print.

use std::io::{self, Write};

use pyo3::prelude::*;

use crate::errors;

/// A stream of Python as the output of passes that print, where tests and notebooks find it.
pub(crate) struct Stream(pub(crate) &'static str);

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        Python::attach(|py| {
            let written = py.import("sys")?.getattr(self.0)?.call_method1("write", (text,));
            match written {
                Err(error) if errors::ends_program(py, &error) => errors::keep_interrupt(error),
                other => _ = other?,
            }
            PyResult::Ok(())
        })
        .map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| py.import("sys")?.getattr(self.0)?.call_method0("flush").map(drop))
            .map_err(io::Error::other)
    }
}
