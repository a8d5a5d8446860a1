//! Calls of a real server at $ASTROCYTE_ADDRESS: `cargo test -- --include-ignored`.

use std::time::Duration;

use astrocyte_client::{Client, Reason, connect, v1};

fn client() -> Client {
    connect(&std::env::var("ASTROCYTE_ADDRESS").expect("ASTROCYTE_ADDRESS is set")).expect("an address")
}

#[tokio::test]
#[ignore = "needs a server"]
async fn what_is_retained_is_recalled_and_streamed() {
    let client = client();
    let bank = "rust-tests";
    let items = ["Ines lives in Porto.", "Callum lives in Edinburgh."].map(|content| v1::StreamRetainRequest {
        bank_id: bank.into(),
        item: Some(v1::RetainItem {
            content: content.into(),
            ..Default::default()
        }),
        ..Default::default()
    });
    let mut answers = client.stream_retain(tokio_stream::iter(items)).await.unwrap();
    let mut stored = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        assert!(matches!(
            answer.outcome,
            Some(v1::stream_retain_response::Outcome::Result(_))
        ));
        stored += 1;
    }
    assert_eq!(stored, 2);
    let query = v1::RecallRequest {
        bank_id: bank.into(),
        query: "where does Ines live?".into(),
        ..Default::default()
    };
    assert_eq!(client.recall(query).await.unwrap().hits[0].text, "Ines lives in Porto.");
    let watch = v1::WatchRequest {
        bank_id: bank.into(),
        after_position: Some(0),
    };
    let mut changes = client.watch(watch).await.unwrap();
    assert_eq!(changes.message().await.unwrap().unwrap().change.unwrap().position, 1);
}

#[tokio::test]
#[ignore = "needs a server"]
async fn errors_have_reasons() {
    let query = v1::RecallRequest {
        bank_id: "nobody".into(),
        query: "anything?".into(),
        ..Default::default()
    };
    let error = client().recall(query.clone()).await.unwrap_err();
    assert_eq!(error.reason, Reason::BankNotFound);
    assert_eq!(error.metadata["bank_id"], "nobody");
    let error = client()
        .recall(v1::RecallRequest {
            max_results: 1_000,
            ..query.clone()
        })
        .await
        .unwrap_err();
    assert_eq!(
        (error.reason, error.field.as_str()),
        (Reason::InvalidArgument, "max_results")
    );
    let late = client().with_deadline(Duration::ZERO).recall(query).await.unwrap_err();
    assert_eq!(late.reason, Reason::DeadlineExceeded);
}

#[tokio::test]
async fn an_address_without_a_server_is_unavailable() {
    // Port 1 is of a service that no machine here has.
    let client = connect("127.0.0.1:1").unwrap();
    let error = client.get_server_info(v1::GetServerInfoRequest {}).await.unwrap_err();
    assert_eq!(error.reason, Reason::Unavailable);
}

#[tokio::test]
async fn options_that_cannot_be_used_are_refused() {
    assert!(connect("no address").is_err());
    let half = astrocyte_client::ConnectOptions {
        certificate: Some("client.pem".into()),
        ..Default::default()
    };
    let error = Client::connect("localhost:50051", half).unwrap_err();
    assert!(error.message.contains("both certificate and key"));
}
