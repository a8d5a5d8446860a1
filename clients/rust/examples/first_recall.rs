//! Stores two memories and recalls the relevant one. The server is at $ASTROCYTE_ADDRESS, by default localhost:50051.

use astrocyte_client::{Error, connect, v1};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let address = std::env::var("ASTROCYTE_ADDRESS").unwrap_or_else(|_| "localhost:50051".to_owned());
    let client = connect(&address)?;
    for content in ["Mara is allergic to sesame, not to nuts.", "Mara plays the cello."] {
        let memory = v1::RetainRequest {
            bank_id: "family-rust".into(),
            content: content.into(),
            ..Default::default()
        };
        client.retain(memory).await?;
    }
    let query = v1::RecallRequest {
        bank_id: "family-rust".into(),
        query: "what is Mara allergic to?".into(),
        ..Default::default()
    };
    for hit in client.recall(query).await?.hits {
        println!("{:.2}  {}", hit.score, hit.text);
    }
    Ok(())
}
