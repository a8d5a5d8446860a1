//! Writes the messages and stubs of the client.
//!
//! `astrocyte-client-generator DESCRIPTORS FOLDER`; DESCRIPTORS is a `FileDescriptorSet` made by protoc. Run by
//! `clients/generate.py`.

use std::error::Error;

use prost::Message;
use prost_types::FileDescriptorSet;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(descriptors), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: astrocyte-client-generator DESCRIPTORS FOLDER".into());
    };
    let files = FileDescriptorSet::decode(std::fs::read(descriptors)?.as_slice())?;
    tonic_prost_build::configure()
        .build_server(false)
        .extern_path(".google.rpc", "::tonic_types")
        .out_dir(&folder)
        .compile_fds(files)?;
    // Google's messages come from crates; the annotations are of no use at run time.
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.ends_with("astrocyte.v1.rs") {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}
