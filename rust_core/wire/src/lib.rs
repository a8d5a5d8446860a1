//! Hits, and what an answer says beside them, as bytes of the protocol, for answers that leave by the wire as the core
//! and the database gave them.
//!
//! Fields go out in the order of their numbers and maps in the order of their keys, so that equal hits are equal bytes.
//! The Python tests compare them with protobuf's own.

pub mod answer;
mod hit;
mod message;

pub use hit::{Hit, Value, field};
pub use message::Message;
