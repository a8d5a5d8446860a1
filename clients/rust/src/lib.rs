//! Client for Astrocyte, a memory server for AI agents.
//!
//! ```no_run
//! # async fn example() -> Result<(), astrocyte_client::Error> {
//! use astrocyte_client::{connect, v1};
//!
//! let client = connect("localhost:50051")?;
//! let query = v1::RecallRequest { bank_id: "family".into(), query: "allergies?".into(), ..Default::default() };
//! for hit in client.recall(query).await?.hits {
//!     println!("{:.2}  {}", hit.score, hit.text);
//! }
//! # Ok(())
//! # }
//! ```

mod calls;
mod client;
mod error;
mod methods;
mod reason;
mod responses;
mod retry_policy;

pub use client::{Client, ConnectOptions, DEFAULT_TIMEOUT, connect};
pub use error::Error;
pub use reason::Reason;
pub use responses::Responses;

/// Messages and stubs of the protocol.
#[allow(missing_docs, clippy::all, clippy::pedantic, rustdoc::all)]
#[rustfmt::skip]
#[path = "generated/astrocyte.v1.rs"]
pub mod v1;
