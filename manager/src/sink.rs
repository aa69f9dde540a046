//! The output for text that people read.

use std::io::{self, Write};

use crate::error::PassError;

/// A writer that stops writing when nobody reads its output any more (a broken pipe).
pub(crate) struct Sink(Option<Box<dyn Write + Send>>);

impl Sink {
    pub(crate) fn new(to: impl Write + Send + 'static) -> Sink {
        Sink(Some(Box::new(to)))
    }

    /// Prints to the writer.
    ///
    /// # Errors
    /// If the output cannot be written, except for a broken pipe.
    pub(crate) fn print(&mut self, print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), PassError> {
        let Some(to) = &mut self.0 else { return Ok(()) };
        let mut to = io::BufWriter::new(to);
        let printed = print(&mut to).and_then(|()| to.flush());
        // Output that could not be written is not written again.
        let _ = to.into_parts();
        match printed {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.0 = None;
                Ok(())
            }
            printed => printed.map_err(|e| PassError::new("the module cannot be printed").with_cause(e)),
        }
    }
}
