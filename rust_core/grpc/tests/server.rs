//! The server beside a client of h2: what grpc's own clients do not show of an answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use astrocyte_grpc::{Method, Options, Server};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request, Response, StatusCode};
use tokio::net::TcpStream;
use tonic::{Code, Status};

const PATH: &str = "/test.Service/Call";
const DETAILS: &[u8] = b"details of a passed deadline";

fn options() -> Options {
    let late = Status::with_details(Code::DeadlineExceeded, "late", DETAILS.into());
    Options {
        max_message_bytes: 4 << 20,
        max_others: 100,
        max_connection_age: None,
        keepalive: Duration::from_secs(60),
        keepalive_timeout: Duration::from_secs(20),
        methods: HashMap::from([(
            PATH.to_owned(),
            Method {
                unary: true,
                kind: None,
            },
        )]),
        kinds: Vec::new(),
        deadline_exceeded: late,
        id_prefix: "t".to_owned(),
        identity: None,
    }
}

/// Runs `test` with a client of a server whose calls nobody answers.
fn with_client<F: Future<Output = ()>>(test: impl FnOnce(Arc<Server>, SendRequest<Bytes>) -> F) {
    let mut server = Server::new(options()).expect("a server");
    let port = server.bind("127.0.0.1:0", false).expect("a port");
    server.start().expect("a thread");
    let server = Arc::new(server);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let stream = TcpStream::connect(("127.0.0.1", port))
            .await
            .expect("a connection");
        let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        test(server.clone(), client.ready().await.expect("a connection")).await;
    });
}

async fn call(
    client: &mut SendRequest<Bytes>,
    content_type: &str,
    body: Option<&'static [u8]>,
) -> Response<h2::RecvStream> {
    let request = Request::post(format!("http://localhost{PATH}"))
        .header("content-type", content_type)
        .header("grpc-timeout", "100m")
        .body(())
        .expect("a request");
    let (response, mut sending) = client.send_request(request, false).expect("a stream");
    if let Some(body) = body {
        sending.send_data(body.into(), true).expect("a window");
    }
    response.await.expect("a response")
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[test]
fn a_passed_deadline_has_details_whether_the_request_came_or_not() {
    for body in [Some(&[0; 5][..]), None] {
        with_client(|_server, mut client| async move {
            let response = call(&mut client, "application/grpc", body).await;
            assert_eq!(text(response.headers(), "grpc-status"), Some("4"));
            let details = text(response.headers(), "grpc-status-details-bin");
            assert!(
                details.is_some_and(|found| found.starts_with("ZGV0YWlscyBvZiBh")),
                "{details:?}"
            );
        });
    }
}

#[test]
fn grpc_web_is_refused_before_there_is_a_call() {
    with_client(|server, mut client| async move {
        for name in ["application/grpc-web", "application/grpc-web+proto"] {
            let response = call(&mut client, name, Some(&[0; 5])).await;
            assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
            assert_eq!(text(response.headers(), "grpc-status"), None);
        }
        assert!(server.take().is_empty());
    });
}
