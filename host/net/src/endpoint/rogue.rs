//! A peer in tests that speaks QUIC and does what it likes besides.

use std::{net::SocketAddr, time::Duration};

use quinn::ClientConfig;
use tokio::runtime::{Builder, Runtime};

use crate::{
    CertificateAuthority, Endpoint, NodeId, Role,
    closing::describe,
    handshake::{MAGIC, Purpose},
};

/// When it goes, it says nothing.
pub(crate) struct Rogue {
    pub(crate) connection: quinn::Connection,
    pub(crate) runtime: Runtime,
}

impl Rogue {
    /// One that has got through TLS, or why it has not.
    pub(crate) fn connect(to: SocketAddr, config: ClientConfig, name: &str) -> Result<Self, String> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let connected = runtime.block_on(async {
            let any = "127.0.0.1:0".parse().expect("an address");
            let endpoint = quinn::Endpoint::client(any).expect("bound");
            endpoint.connect_with(config, to, name).expect("a name").await
        });
        match connected {
            Ok(connection) => Ok(Self { connection, runtime }),
            Err(error) => Err(describe(&error).to_string()),
        }
    }

    /// One with the certificate of a worker.
    pub(crate) fn of(authority: &CertificateAuthority, to: &Endpoint) -> Self {
        let config = authority.identity(Role::Worker).expect("issued").client_config().expect("good");
        Self::connect(to.address(), config, &to.role().dns_name(authority.cluster())).expect("connected")
    }

    /// Sends bytes on a stream, and tells why the connection was closed.
    pub(crate) fn say(&self, bytes: &[u8]) -> String {
        let sent = async {
            let (mut stream, _receive) = self.connection.open_bi().await.expect("one is allowed");
            let _ = stream.write_all(bytes).await;
            let _ = stream.finish();
            self.ended().await
        };
        self.runtime.block_on(sent)
    }

    /// Why the connection was closed.
    pub(crate) async fn ended(&self) -> String {
        let closed = tokio::time::timeout(Duration::from_secs(10), self.connection.closed()).await;
        describe(&closed.expect("within ten seconds")).to_string()
    }
}

/// A greeting of the node 1.
pub(crate) fn hello(version: u16, cluster: &str, role: Role, purpose: Purpose) -> Vec<u8> {
    let body = postcard::to_stdvec(&(cluster, role, NodeId(1), purpose)).expect("encoded");
    let mut bytes = MAGIC.to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend((body.len() as u16).to_le_bytes());
    bytes.extend(body);
    bytes
}
