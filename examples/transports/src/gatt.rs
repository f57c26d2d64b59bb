//! MCP over Bluetooth Low Energy: messages as writes and notifications of a GATT service. The codec
//! does no I/O, and allocates nothing.
//!
//! There is no published convention. This one is as small as it can be. The service has two
//! characteristics: the client writes its fragments to one (*write without response* suffices), and
//! subscribes to the notifications of the other. A fragment is a value of at most `ATT_MTU - 3` bytes:
//!
//! | Byte 0, bit 7 | bit 6 | bits 5 to 0 | Bytes 1 to the end |
//! | --- | --- | --- | --- |
//! | first of a message | last of a message | number, one more than that of the fragment before, modulo 64 | a part of the message |
//!
//! The numbers of each direction begin with 0 when the connection opens, and continue from message to
//! message, so that a lost or repeated fragment is noticed at the next one. Then a message is lost: end
//! the connection. The disconnection of the link is the end of the connection.
//!
//! The link layer has a checksum of its own, retransmits, and keeps order; what can get lost are values
//! for which a stack has no room, and that is what the number is for.

use core::fmt;

const FIRST: u8 = 0x80;
const LAST: u8 = 0x40;
const NUMBER: u8 = 0x3f;

/// The smallest `ATT_MTU`, which every device supports.
pub const ATT_MTU_MIN: usize = 23;

/// The part of `ATT_MTU` that is left for a value.
#[must_use]
pub const fn value_length(att_mtu: usize) -> usize {
    att_mtu.saturating_sub(3)
}

/// Splits messages into fragments.
#[derive(Debug, Default)]
pub struct Fragmenter {
    number: u8,
}

impl Fragmenter {
    /// Creates the fragmenter of one direction of a connection.
    #[must_use]
    pub const fn new() -> Self {
        Self { number: 0 }
    }

    /// Writes the next fragment of a message into `value`, which has the length of a value. `offset` is
    /// 0 for the first one; returns the length of the fragment, and moves `offset` to the next one. The
    /// message is complete when `offset` is its length.
    ///
    /// # Panics
    ///
    /// If `value` has no room for a header and a byte, or `offset` is beyond the message.
    pub fn next(&mut self, message: &[u8], offset: &mut usize, value: &mut [u8]) -> usize {
        assert!(value.len() > 1, "a value has a header and a part of a message");
        let rest = &message[*offset..];
        let length = rest.len().min(value.len() - 1);
        let first = if *offset == 0 { FIRST } else { 0 };
        let last = if length == rest.len() { LAST } else { 0 };
        value[0] = first | last | self.number;
        value[1..=length].copy_from_slice(&rest[..length]);
        self.number = (self.number + 1) & NUMBER;
        *offset += length;
        length + 1
    }
}

/// Why a message was lost: end the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentError {
    /// A fragment is missing, or arrived twice.
    OutOfSequence,
    /// The peer begins a message within another, or continues one that has not begun.
    Unexpected,
    /// The message is longer than the memory for it.
    TooLong,
}

impl fmt::Display for FragmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfSequence => "a fragment was lost or repeated",
            Self::Unexpected => "the peer sent a fragment of no message",
            Self::TooLong => "a message is longer than the memory of its receiver",
        })
    }
}

impl core::error::Error for FragmentError {}

/// Joins fragments, in lent memory: the longest message.
#[derive(Debug)]
pub struct Reassembler<'b> {
    storage: &'b mut [u8],
    length: usize,
    number: u8,
    is_within: bool,
}

impl<'b> Reassembler<'b> {
    /// Creates the reassembler of one direction of a connection.
    #[must_use]
    pub const fn new(storage: &'b mut [u8]) -> Self {
        Self { storage, length: 0, number: 0, is_within: false }
    }

    /// Takes a value that was written or notified. Returns the message that it completes.
    ///
    /// # Errors
    ///
    /// A message was lost. Further values are of no use.
    pub fn take(&mut self, value: &[u8]) -> Result<Option<&[u8]>, FragmentError> {
        let Some((header, part)) = value.split_first() else {
            return Err(FragmentError::Unexpected);
        };
        if header & NUMBER != self.number {
            return Err(FragmentError::OutOfSequence);
        }
        if (header & FIRST != 0) == self.is_within {
            return Err(FragmentError::Unexpected);
        }
        self.number = (self.number + 1) & NUMBER;
        let end = self.length + part.len();
        let place = self.storage.get_mut(self.length..end).ok_or(FragmentError::TooLong)?;
        place.copy_from_slice(part);
        self.is_within = header & LAST == 0;
        self.length = if self.is_within { end } else { 0 };
        Ok((!self.is_within).then(|| &self.storage[..end]))
    }
}
