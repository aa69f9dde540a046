//! Where text goes that is printed for people.

use std::io::{self, Write};

use crate::error::PassError;

/// A writer that nothing more is written to once nobody reads it any more (a broken pipe).
pub(crate) struct Sink(Option<Box<dyn Write + Send>>);

impl Sink {
    pub(crate) fn new(to: impl Write + Send + 'static) -> Sink {
        Sink(Some(Box::new(to)))
    }

    /// Prints something.
    ///
    /// # Errors
    /// If it cannot be written, except where nobody reads it.
    pub(crate) fn print(&mut self, print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), PassError> {
        let Some(to) = &mut self.0 else { return Ok(()) };
        let mut to = io::BufWriter::new(to);
        let printed = print(&mut to).and_then(|()| to.flush());
        // What could not be written is not tried again.
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
