//! Files that are written completely or not at all.
//!
//! A file is written under a temporary name in its target folder, and renamed when it is complete.
//! So a failure, or the end of the process, leaves the old file. The process keeps a list of its
//! temporary files, for a signal handler that ends the process: [`remove_unfinished_files`].

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The temporary files of this process. Files are created, renamed and removed under the lock.
static UNFINISHED: Mutex<TemporaryFiles> = Mutex::new(TemporaryFiles { paths: Vec::new(), count: 0 });

/// Takes the lock, even if another holder panicked: the list is consistent after every statement.
fn unfinished_files() -> MutexGuard<'static, TemporaryFiles> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

struct TemporaryFiles {
    paths: Vec<PathBuf>,
    /// The number in the name of the next temporary file.
    count: u64,
}

/// The greatest number of links to links that are followed, as on Linux.
const MOST_LINKS: usize = 40;

/// A file that is written under a temporary name until [`finish`](UnfinishedFile::finish). Dropping
/// it removes the file.
#[derive(Debug)]
pub struct UnfinishedFile {
    temporary: PathBuf,
    target: PathBuf,
}

impl UnfinishedFile {
    /// Writes a whole file. If `path` is a symbolic link, writes the file that it leads to, whether
    /// that exists or not.
    ///
    /// The new file takes over the mode of an existing file and, if the process is allowed to set
    /// them, its owner and group.
    ///
    /// # Errors
    /// If `path` is a folder or a device, the existing file may not be written, or no file can be
    /// created in its folder, and the errors of `write`.
    pub fn write(
        path: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<UnfinishedFile> {
        let target = follow_links(path)?;
        let old = match fs::metadata(&target) {
            Ok(old) if old.is_file() => {
                // A file that may not be written may not be replaced either.
                OpenOptions::new().write(true).open(&target)?;
                Some(old)
            }
            Ok(old) if old.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) => return Err(io::Error::other("it is not a regular file")),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let (temporary, file) = create_temporary(&target, old.is_some())?;
        let unfinished = UnfinishedFile { temporary, target };
        if let Some(old) = old {
            inherit(&file, &old)?;
        }
        let mut out = BufWriter::with_capacity(1 << 16, file);
        write(&mut out)?;
        out.flush()?;
        Ok(unfinished)
    }

    /// Renames the file to its final name.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn finish(self) -> io::Result<()> {
        UnfinishedFile::finish_all([self])
    }

    /// Renames files that belong together to their final names, all or none. No signal whose
    /// handler calls [`remove_unfinished_files`] interrupts the renaming.
    ///
    /// The old files are moved aside first. So if the process ends in between, no old file is left
    /// next to a new one. If it is ended there by a signal that cannot be caught, such as SIGKILL,
    /// the old files exist only under the names that they were moved to, `.anfora.PID.N.part` in
    /// the folders of the new files.
    ///
    /// # Errors
    /// If a file cannot be renamed. The old files are back in place then. If there are several
    /// files, the error names the one that failed.
    pub fn finish_all(files: impl IntoIterator<Item = UnfinishedFile>) -> io::Result<()> {
        let files: Vec<UnfinishedFile> = files.into_iter().collect();
        let mut unfinished = unfinished_files();
        let finished = match files.as_slice() {
            // A single file cannot be out of step with others.
            [file] => unfinished.name(file),
            files => unfinished.name_all(files),
        };
        // Dropping the files takes the lock.
        drop(unfinished);
        finished
    }
}

impl TemporaryFiles {
    /// Renames a file to its final name, replacing the old file.
    fn name(&mut self, file: &UnfinishedFile) -> io::Result<()> {
        fs::rename(&file.temporary, &file.target)?;
        self.paths.retain(|path| *path != file.temporary);
        Ok(())
    }

    /// Renames all files to their final names, or leaves everything as it was.
    fn name_all(&mut self, files: &[UnfinishedFile]) -> io::Result<()> {
        let (mut aside, mut named) = (Vec::new(), Vec::new());
        let mut name_each = || {
            for file in files {
                aside.extend(self.move_aside(&file.target).map_err(|e| (file, e))?.map(|old| (old, &file.target)));
            }
            for file in files {
                self.name(file).map_err(|e| (file, e))?;
                named.push(&file.target);
            }
            Ok(())
        };
        let Err((file, e)) = name_each() else {
            // If the old file cannot be removed, it stays.
            aside.iter().for_each(|(old, _)| drop(fs::remove_file(old)));
            return Ok(());
        };
        let mut message = format!("{}: {e}", file.target.display());
        // A file that cannot be removed is replaced below, or stays.
        named.iter().for_each(|target| drop(fs::remove_file(target)));
        for (old, target) in aside {
            if fs::rename(&old, target).is_err() {
                message += &format!("; what {} was is now {}", target.display(), old.display());
            }
        }
        Err(io::Error::new(e.kind(), message))
    }

    /// Moves the file at a path to a new name, and returns that name; `None` if there is no file.
    fn move_aside(&mut self, path: &Path) -> io::Result<Option<PathBuf>> {
        match fs::symlink_metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        }
        let (aside, _) = self.create_new(folder_of(path), OpenOptions::new().write(true))?;
        if let Err(e) = fs::rename(path, &aside) {
            // If the empty file cannot be removed, it stays.
            let _ = fs::remove_file(&aside);
            return Err(e);
        }
        Ok(Some(aside))
    }

    /// Creates a file with an unused name in a folder.
    fn create_new(&mut self, folder: &Path, options: &mut OpenOptions) -> io::Result<(PathBuf, File)> {
        options.create_new(true);
        loop {
            let path = folder.join(format!(".anfora.{}.{}.part", std::process::id(), self.count));
            self.count += 1;
            match options.open(&path) {
                Ok(file) => return Ok((path, file)),
                // A process with the same id may have left the file.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    let message = format!("no file can be created in the folder {}: {e}", folder.display());
                    return Err(io::Error::new(e.kind(), message));
                }
            }
        }
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        let mut unfinished = unfinished_files();
        // A file that has its final name is not in the list any more.
        if let Some(i) = unfinished.paths.iter().position(|path| *path == self.temporary) {
            unfinished.paths.swap_remove(i);
            // If the file cannot be removed, it stays.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Writes a file that appears only when it is complete; see [`UnfinishedFile::write`]. A device or
/// a pipe is written directly.
///
/// # Errors
/// If the file cannot be written, and the errors of `write`. An existing file is as it was then.
pub fn write_file(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let mut out = BufWriter::with_capacity(1 << 16, OpenOptions::new().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    }
    UnfinishedFile::write(path, write)?.finish()
}

/// Removes the temporary files of this process, which is about to end: calls that create or finish
/// a file after that wait for ever.
pub fn remove_unfinished_files() {
    let unfinished = unfinished_files();
    for path in &unfinished.paths {
        // If the file cannot be removed, it stays.
        let _ = fs::remove_file(path);
    }
    std::mem::forget(unfinished);
}

/// Returns the path of the file that a path leads to if it is a symbolic link, or a link to one;
/// the file need not exist. Links to folders within the path are kept.
///
/// # Errors
/// If a link cannot be read, or more than 40 links follow each other.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&target) {
            Ok(there) if there.file_type().is_symlink() => {
                let next = fs::read_link(&target)?;
                // A relative link starts in the folder that contains it.
                target = folder_of(&target).join(next);
            }
            // Errors of the file itself show when it is used.
            _ => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links follow each other"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Creates a file with a new name in the folder of `target`. If the file is to get the mode of
/// another file, nobody else may open it until it has that mode.
fn create_temporary(target: &Path, private: bool) -> io::Result<(PathBuf, File)> {
    let Some(name) = target.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path does not end in the name of a file"));
    };
    if target.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is to be a folder", name.display())));
    }
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    let mut unfinished = unfinished_files();
    let (temporary, file) = unfinished.create_new(folder_of(target), &mut options)?;
    unfinished.paths.push(temporary.clone());
    Ok((temporary, file))
}

/// Gives a new file the mode of an old one, and its owner and group if that is allowed.
#[cfg(unix)]
fn inherit(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let new = file.metadata()?;
    let mut mode = old.mode() & 0o7777;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) && fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        // The rights of the old owner and group must not go to others.
        mode &= 0o777;
        if new.gid() != old.gid() && fchown(file, None, Some(old.gid())).is_err() {
            mode &= 0o707 | (mode & 0o7) << 3;
        }
    }
    if new.mode() & 0o7777 != mode {
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn inherit(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}
