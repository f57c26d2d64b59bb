//! The server without an allocator: it gives the same answers as the machine with one, and survives
//! malicious clients in the memory that it was lent.

mod answers;
mod day;
mod hostile;
mod offers;
