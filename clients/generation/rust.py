"""The generated part of the Rust client: messages and stubs, methods of a client, reasons of errors."""

from __future__ import annotations

import subprocess
from pathlib import Path

from generation.outputs import HEADER, pascal, sentence, snake
from generation.protocol import Method, Protocol

# Fields of `Facts` in the client.
FACTS = 3
CRATE = Path(__file__).resolve().parents[1] / "rust"


def generate(protocol: Protocol, folder: Path) -> None:
    """Write the files below ``folder``."""
    target = folder / "rust/src"
    generated = target / "generated"
    generated.mkdir(parents=True)
    descriptors = folder / "rust-descriptors"
    descriptors.write_bytes(protocol.descriptors.SerializeToString())
    command = ["cargo", "run", "--quiet", "--locked", "--package", "astrocyte-client-generator", "--"]
    subprocess.run([*command, str(descriptors), str(generated)], cwd=CRATE, check=True)
    (target / "methods.rs").write_text(_formatted(_methods(protocol)), encoding="utf-8")
    (target / "reason.rs").write_text(_formatted(_reasons(protocol)), encoding="utf-8")
    examples = folder / "rust/conformance/src"
    examples.mkdir(parents=True)
    (examples / "methods.rs").write_text(_formatted(_dispatch(protocol)), encoding="utf-8")


def _formatted(source: str) -> str:
    done = subprocess.run(
        ["rustfmt", "--edition", "2024", "--config-path", str(CRATE)],
        input=source,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def _methods(protocol: Protocol) -> str:
    lines = [
        f"// {HEADER}",
        "//! The methods of a client, one for each RPC.",
        "",
        "use futures_core::Stream;",
        "",
        "use crate::calls::Facts;",
        "use crate::client::{Client, MAX_RECEIVE_BYTES};",
        "use crate::error::Error;",
        "use crate::responses::Responses;",
        "use crate::v1;",
        "",
        "impl Client {",
    ]
    for index, method in enumerate(protocol.methods):
        lines += [*([""] if index else []), *_method(method)]
    return "\n".join([*lines, "}"]) + "\n"


def _method(method: Method) -> list[str]:
    name = snake(method.name)
    stub = f"v1::{snake(method.service)}_client::{method.service}Client"
    comment = [f"    /// {line}".rstrip() for line in method.comment]
    if method.client_streaming:
        return [
            *comment,
            f"    pub async fn {name}(&self, requests: impl Stream<Item = v1::{method.input}> + Send + 'static)",
            f"        -> Result<Responses<v1::{method.output}>, Error> {{",
            "        let request = self.request(requests, None)?;",
            f"        let mut stub = {stub}::new(self.channel()).max_decoding_message_size(MAX_RECEIVE_BYTES);",
            f"        let answer = stub.{name}(request).await;",
            "        Ok(Responses::new(answer.map_err(crate::calls::lost_connection)?))",
            "    }",
        ]
    facts = []
    if method.bank:
        facts.append(f"bank: {_bank(method)}")
    if method.has_timeout:
        facts.append("wait: message.timeout")
    if method.extra_seconds:
        facts.append(f"extra_seconds: {method.extra_seconds}")
    rest = [] if len(facts) == FACTS else ["..Facts::default()"]
    result, call = (
        (f"Responses<v1::{method.output}>", "server_stream")
        if method.server_streaming
        else (f"v1::{method.output}", "unary")
    )
    mutable, fill = (
        ("mut ", ["        crate::calls::fill_request_id(&mut message.request_id);"])
        if method.has_request_id
        else ("", [])
    )
    return [
        *comment,
        f"    pub async fn {name}(&self, {mutable}message: v1::{method.input}) -> Result<{result}, Error> {{",
        *fill,
        f"        let facts = Facts {{ {', '.join([*facts, *rest])} }};"
        if facts
        else "        let facts = Facts::default();",
        f"        self.{call}(message, facts, |channel, request| async move {{",
        f"            let mut stub = {stub}::new(channel).max_decoding_message_size(MAX_RECEIVE_BYTES);",
        f"            stub.{name}(request).await",
        "        })",
        "        .await",
        "    }",
    ]


def _bank(method: Method) -> str:
    if len(method.bank) == 1:
        return f"message.{method.bank[0]}.clone()"
    outer, inner = method.bank
    return f"message.{outer}.as_ref().map(|nested| nested.{inner}.clone()).unwrap_or_default()"


def _reasons(protocol: Protocol) -> str:
    lines = [
        f"// {HEADER}",
        "//! The reasons of errors.",
        "",
        "/// Reason of an error. A newer server may send one that this version does not know.",
        "#[derive(Clone, Debug, PartialEq, Eq, Hash)]",
        "#[non_exhaustive]",
        "pub enum Reason {",
    ]
    for reason in protocol.reasons:
        lines += [f"    /// {sentence(reason.comment)}", f"    {pascal(reason.name)},"]
    lines += [
        "    /// A reason that this version does not know; empty if there is none.",
        "    Other(String),",
        "}",
        "",
    ]
    lines += ["impl Reason {", "    /// The reason of a name, such as `BANK_NOT_FOUND`."]
    lines += ["    pub fn from_name(name: &str) -> Self {", "        match name {"]
    lines += [f'            "{reason.name}" => Self::{pascal(reason.name)},' for reason in protocol.reasons]
    lines += ["            other => Self::Other(other.to_owned()),", "        }", "    }", ""]
    lines += ["    /// The name of the reason.", "    pub fn name(&self) -> &str {", "        match self {"]
    lines += [f'            Self::{pascal(reason.name)} => "{reason.name}",' for reason in protocol.reasons]
    lines += ["            Self::Other(name) => name,", "        }", "    }", "}"]
    return "\n".join(lines) + "\n"


def _dispatch(protocol: Protocol) -> str:
    """Calls by name with encoded messages, for the driver of the conformance test: Rust has no reflection."""
    lines = [
        f"// {HEADER}",
        "//! Calls by the name of their RPC.",
        "",
        "use astrocyte_client::{Client, v1};",
        "",
        "use crate::{Outcome, decode, every, server_stream, unary};",
        "",
        "/// Makes a call with encoded requests; returns at most `take` encoded responses.",
        "pub async fn call(client: &Client, method: &str, requests: &[Vec<u8>], take: usize) -> Outcome {",
        "    match method {",
    ]
    for method in protocol.methods:
        name = snake(method.name)
        kind = f"v1::{method.input}"
        if method.client_streaming:
            value = f"server_stream(client.{name}(every::<{kind}>(requests)).await, take).await"
        elif method.server_streaming:
            value = f"server_stream(client.{name}(decode::<{kind}>(&requests[0])).await, take).await"
        else:
            value = f"unary(client.{name}(decode::<{kind}>(&requests[0])).await)"
        lines.append(f'        "{method.name}" => {value},')
    lines += ['        other => panic!("no method {other}"),', "    }", "}"]
    return "\n".join(lines) + "\n"
