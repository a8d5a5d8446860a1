//! Driver of the conformance test: reads calls as lines of JSON and writes their outcomes.

// As in the client.
#![allow(clippy::result_large_err)]

mod methods;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use astrocyte_client::{Client, ConnectOptions, Error, Reason, Responses};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use serde_json::{Value, json};
use tokio_stream::Stream;

/// Encoded responses, or the failure of a call.
pub type Outcome = Result<Vec<Vec<u8>>, Error>;

#[tokio::main]
async fn main() {
    let mut clients: HashMap<String, Client> = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let step: Value = serde_json::from_str(&line.expect("a line of text")).expect("a line of JSON");
        let name = step["connection"].to_string();
        if !clients.contains_key(&name) {
            clients.insert(name.clone(), connected(&step["connection"]));
        }
        let mut client = clients[&name].clone();
        if let Some(seconds) = step["deadline"].as_f64() {
            client = client.with_deadline(Duration::from_secs_f64(seconds));
        }
        if let Some(headers) = step["headers"].as_object() {
            for (name, value) in headers {
                client = client.with_header(name, value.as_str().expect("a text"));
            }
        }
        let requests: Vec<Vec<u8>> = step["requests"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| STANDARD.decode(one.as_str().expect("a text")).expect("base64"))
            .collect();
        let take = step["take"]
            .as_u64()
            .map_or(usize::MAX, |take| usize::try_from(take).expect("a small number"));
        let outcome = methods::call(&client, step["method"].as_str().expect("a text"), &requests, take).await;
        println!("{}", written(outcome));
        std::io::stdout().flush().expect("standard output");
    }
}

fn connected(options: &Value) -> Client {
    let file = |key: &str| options[key].as_str().map(PathBuf::from);
    let options_of = ConnectOptions {
        api_key: options["api_key"].as_str().map(str::to_owned),
        tls: options["tls"].as_bool().unwrap_or(false),
        ca: file("ca"),
        certificate: file("certificate"),
        key: file("key"),
        retries: options["retries"].as_bool().unwrap_or(true),
        ..ConnectOptions::default()
    };
    Client::connect(options["address"].as_str().expect("an address"), options_of).expect("a connection")
}

fn written(outcome: Outcome) -> Value {
    match outcome {
        Ok(responses) => json!({"responses": responses.iter().map(|one| STANDARD.encode(one)).collect::<Vec<_>>()}),
        Err(error) => json!({"error": {
            "code": error.code as i32,
            "kind": kind(&error),
            "reason": error.reason.name(),
            "message": error.message,
            "metadata": error.metadata,
            "field": error.field,
            "retry_after": error.retry_after.map(|delay| delay.as_secs_f64()),
            "request_id": error.request_id,
        }}),
    }
}

/// The variant of the reason; empty if there is none.
fn kind(error: &Error) -> String {
    match &error.reason {
        Reason::Other(_) => String::new(),
        known => format!("{known:?}"),
    }
}

/// The message of some bytes.
pub fn decode<T: Message + Default>(bytes: &[u8]) -> T {
    T::decode(bytes).expect("a message")
}

/// The messages of some bytes, as a stream.
pub fn every<T: Message + Default>(requests: &[Vec<u8>]) -> impl Stream<Item = T> + use<T> {
    tokio_stream::iter(requests.iter().map(|one| decode(one)).collect::<Vec<T>>())
}

/// The outcome of a call with one response.
pub fn unary<T: Message>(outcome: Result<T, Error>) -> Outcome {
    Ok(vec![outcome?.encode_to_vec()])
}

/// The first responses of a stream.
pub async fn server_stream<T: Message>(outcome: Result<Responses<T>, Error>, take: usize) -> Outcome {
    let mut responses = outcome?;
    let mut found = Vec::new();
    while found.len() < take {
        match responses.message().await? {
            Some(response) => found.push(response.encode_to_vec()),
            None => break,
        }
    }
    Ok(found)
}
