//! Writes several pieces of memory to the gateway as one.

use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::unix::net::UnixStream;

/// Writes all of them, one behind the other.
///
/// # Errors
/// Those of the system; most likely the gateway has closed the connection.
pub fn write_all(mut stream: &UnixStream, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    // None that is empty is left at the beginning.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        // Most answers are one piece, and a vector of one costs more.
        let written = match slices {
            [only] => stream.write(only),
            _ => stream.write_vectored(slices),
        };
        match written {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
