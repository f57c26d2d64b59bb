use alloc::vec::Vec;

/// Cuts a byte stream into lines, in memory that it is lent or that it grows up to a limit.
///
/// Read into [`LineDecoder::space`], [`LineDecoder::commit`] what was read, take every
/// [`LineDecoder::next_frame`]; at the end of input call [`LineDecoder::handle_eof`].
#[derive(Debug)]
pub struct LineDecoder<'b> {
    storage: Storage<'b>,
}

#[derive(Debug)]
enum Storage<'b> {
    Lent(&'b mut [u8]),
    Grown(Vec<u8>),
}

/// What went wrong between two frames. The peer's fault; the stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A line does not fit; it is skipped up to its end.
    #[error("a line is longer than {limit} bytes")]
    TooLong {
        /// The greatest length of a line, its line end included.
        limit: usize,
    },
    /// The input ended within a line.
    #[error("the input ended {length} bytes into a line")]
    Truncated {
        /// How much of the line had come.
        length: usize,
    },
}

impl<'b> LineDecoder<'b> {
    /// Frames in `storage`, whose length is the limit of a line, line end included.
    #[must_use]
    pub fn lent(storage: &'b mut [u8]) -> Self {
        Self { storage: Storage::Lent(storage) }
    }

    /// Frames in memory that starts small and grows up to `limit` bytes, the limit of a line, line
    /// end included.
    #[must_use]
    pub fn growing(limit: usize) -> LineDecoder<'static> {
        LineDecoder { storage: Storage::Grown(Vec::with_capacity(limit.min(16))) }
    }

    /// Where the next bytes go.
    pub fn space(&mut self) -> &mut [u8] {
        match &mut self.storage {
            Storage::Lent(storage) => storage,
            Storage::Grown(storage) => storage,
        }
    }

    /// Takes the first `count` bytes of [`LineDecoder::space`] as read.
    pub fn commit(&mut self, count: usize) {
        let _ = count;
    }

    /// Copies the start of `bytes` in and says how much was taken.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }

    /// The next whole line without its line end.
    #[must_use]
    pub fn next_frame(&mut self) -> Option<Result<&[u8], FrameError>> {
        None
    }

    /// Takes the end of input.
    pub fn handle_eof(&mut self) -> Option<FrameError> {
        None
    }
}
