//! How fast rows travel between two endpoints on loopback, against a bare stream of QUIC with the same settings.
//!
//! `cargo run --release -p millstream-net --example throughput -- [MEGABYTES] [ROWS] [CHANNELS]`: so many megabytes of rows
//! of some 100 bytes, so many rows a batch, over so many channels. With several channels it is also told how much the
//! others lose when one receiver stands still.

use std::{
    future::poll_fn,
    net::SocketAddr,
    sync::{Arc, Barrier},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};
use arrow_array::{ArrayRef, Float64Array, Int64Array, StringViewArray};
use millstream_net::{
    CertificateAuthority, ChannelId, ChannelReceiver, ChannelSender, ClusterId, Endpoint, EndpointOptions,
    ExecutionKey, GateBudget, Place, Role, Route, Transport,
};
use millstream_types::{Batch, DataType, Field, Schema, StreamElement};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::print_stdout, reason = "what it measures is its output")]
fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next =
        |default: usize| arguments.next().map_or(Ok(default), |text| text.parse().context("no number"));
    let (megabytes, rows, channels) = (next(2000)?, next(300)?, next(1)?);
    let batch = batch(rows)?;
    let batches = (megabytes << 20) / batch.content_bytes();
    let bytes = batches * batch.content_bytes();
    let mut before = processor_seconds()?;
    let mut report = |what: &str, took: Duration| -> Result<()> {
        let now = processor_seconds()?;
        let gigabytes = bytes as f64 / 1e9;
        let (rate, spent) = (gigabytes / took.as_secs_f64(), (now - before) / gigabytes);
        let rows = (batches * rows) as f64 / took.as_secs_f64() / 1e6;
        println!("{what}: {rate:.2} GB/s, {rows:.1} M rows/s, {spent:.2} s of processors a GB");
        before = now;
        Ok(())
    };
    report("a bare stream", bare_stream(bytes)?)?;
    let all = rows_of(&batch, batches, channels, None)?;
    report(&format!("{channels} channels, {} bytes a batch", batch.content_bytes()), all)?;
    if channels > 1 {
        let others = rows_of(&batch, batches, channels, Some(0))?;
        report("the same with one receiver that stands still", others)?;
    }
    Ok(())
}

/// What this process has used of its processors.
fn processor_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("no name in /proc/self/stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}

fn batch(rows: usize) -> Result<Batch> {
    let numbers = (0..rows as i64).collect::<Vec<_>>();
    let texts = numbers.iter().map(|number| format!("{number:076}"));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(numbers.clone())),
        Arc::new(Float64Array::from_iter_values(numbers.iter().map(|&number| number as f64))),
        Arc::new(StringViewArray::from_iter_values(texts)),
    ];
    Ok(Batch::new(&schema(), columns, numbers.into())?)
}

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("key", DataType::Int64),
        Field::new("value", DataType::Float64),
        Field::new("text", DataType::Utf8),
    ])
}

/// Sends so many batches, in turn over all channels but that which nobody takes from.
fn rows_of(batch: &Batch, batches: usize, channels: usize, stopped: Option<usize>) -> Result<Duration> {
    let authority = CertificateAuthority::new(ClusterId::random())?;
    let open = || -> Result<Endpoint> {
        Ok(Endpoint::bind(LOOPBACK.parse()?, authority.identity(Role::Worker)?, EndpointOptions::default())?)
    };
    let (sending, receiving) = (open()?, open()?);
    let [from, to] = [&sending, &receiving].map(|e| Place { node: e.node(), address: e.address() });
    let route = move |_| Route { from, to, schema: schema() };
    let execution = ExecutionKey { job: 1, attempt: 0 };
    let (there, here) = (receiving.transport(execution, route), sending.transport(execution, route));
    let ids: Vec<_> = (0..channels as u32).map(|from| ChannelId { edge: 0, from, to: 0 }).collect();
    let mut receivers = there.gate(&ids, GateBudget::of_channels(channels))?;
    let ready = Arc::new(Barrier::new(2));
    let feed = {
        let (batch, ready) = (batch.clone(), ready.clone());
        std::thread::spawn(move || feed(&here, &ids, &batch, batches, stopped, &ready))
    };
    // Until all channels are open.
    for receiver in &mut receivers {
        block_on(receive(&mut **receiver))?;
    }
    ready.wait();
    let started = Instant::now();
    let mut left = batches;
    let mut turn = 0;
    while left > 0 {
        let taken = block_on(poll_fn(|cx| {
            for offset in 0..channels {
                let index = (turn + offset) % channels;
                if Some(index) == stopped {
                    continue;
                }
                if let Poll::Ready(received) = receivers[index].poll_receive(cx) {
                    turn = index + 1;
                    return Poll::Ready(received);
                }
            }
            Poll::Pending
        }))?;
        left -= usize::from(matches!(taken, StreamElement::Batch(_)));
    }
    let took = started.elapsed();
    ready.wait();
    feed.join().map_err(|_| anyhow!("the sender has failed"))??;
    Ok(took)
}

/// Sends what one thread sends.
fn feed(
    transport: &dyn Transport,
    ids: &[ChannelId],
    batch: &Batch,
    batches: usize,
    stopped: Option<usize>,
    ready: &Barrier,
) -> Result<()> {
    let mut senders = ids.iter().map(|&id| transport.sender(id)).collect::<Result<Vec<_>, _>>()?;
    for sender in &mut senders {
        block_on(send(&mut **sender, StreamElement::Idle))?;
    }
    if let Some(stopped) = stopped {
        let mut element = Some(StreamElement::Batch(batch.clone()).into());
        let mut context = Context::from_waker(Waker::noop());
        while senders[stopped].poll_send(&mut context, &mut element)?.is_ready() {
            element = Some(StreamElement::Batch(batch.clone()).into());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    ready.wait();
    let going = (0..senders.len()).filter(|&index| Some(index) != stopped).collect::<Vec<_>>();
    for turn in 0..batches {
        let sender = &mut senders[going[turn % going.len()]];
        block_on(send(&mut **sender, StreamElement::Batch(batch.clone())))?;
    }
    // Channels whose senders go end.
    ready.wait();
    Ok(())
}

async fn send(sender: &mut dyn ChannelSender, element: StreamElement) -> Result<()> {
    let mut element = Some(element.into());
    Ok(poll_fn(|cx| sender.poll_send(cx, &mut element)).await?)
}

async fn receive(receiver: &mut dyn ChannelReceiver) -> Result<StreamElement> {
    Ok(poll_fn(|cx| receiver.poll_receive(cx)).await?)
}

/// A task for a thread that does nothing else.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// The same bytes over one stream, read as they come.
fn bare_stream(bytes: usize) -> Result<Duration> {
    let authority = CertificateAuthority::new(ClusterId::random())?;
    let threads = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let (sending, receiving) = (threads()?, threads()?);
    let (server, address) = receiving.block_on(async { bare::server(&authority, LOOPBACK.parse()?) })?;
    let reader = receiving.spawn(async move {
        let connection = server.accept().await.context("closed")?.await?;
        let mut stream = connection.accept_uni().await?;
        let mut left = bytes;
        while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
            left -= chunk.bytes.len();
        }
        anyhow::ensure!(left == 0, "{left} bytes are missing");
        anyhow::Ok(())
    });
    sending.block_on(async {
        let connection = bare::client(&authority, address).await?;
        let mut stream = connection.open_uni().await?;
        let piece = bytes::Bytes::from(vec![7u8; 32 * 1024]);
        let started = Instant::now();
        let mut left = bytes;
        while left > 0 {
            let now = piece.slice(..left.min(piece.len()));
            left -= now.len();
            stream.write_chunk(now).await?;
        }
        stream.finish()?;
        reader.await??;
        Ok(started.elapsed())
    })
}

/// Endpoints of quinn, set as ours are.
mod bare {
    use super::*;
    use std::sync::Arc;

    use quinn::{
        ClientConfig, EndpointConfig, MtuDiscoveryConfig, ServerConfig, TokioRuntime, TransportConfig,
        VarInt,
        crypto::rustls::{QuicClientConfig, QuicServerConfig},
    };
    use rustls::{
        RootCertStore,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        version::TLS13,
    };

    pub(super) fn server(
        authority: &CertificateAuthority,
        address: SocketAddr,
    ) -> Result<(quinn::Endpoint, SocketAddr)> {
        let issued = authority.issue(Role::Worker, Duration::from_secs(3600))?;
        let certificate = CertificateDer::from_pem_slice(issued.certificate_pem.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes())?;
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(config)?));
        config.transport_config(transport());
        let endpoint =
            quinn::Endpoint::new(endpoint()?, Some(config), socket(address)?, Arc::new(TokioRuntime))?;
        let address = endpoint.local_addr()?;
        Ok((endpoint, address))
    }

    pub(super) async fn client(
        authority: &CertificateAuthority,
        address: SocketAddr,
    ) -> Result<quinn::Connection> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.certificate_pem().as_bytes())?)?;
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(config)?));
        config.transport_config(transport());
        let endpoint =
            quinn::Endpoint::new(endpoint()?, None, socket(LOOPBACK.parse()?)?, Arc::new(TokioRuntime))?;
        Ok(endpoint
            .connect_with(config, address, &format!("worker.{}.millstream", authority.cluster()))?
            .await?)
    }

    fn endpoint() -> Result<EndpointConfig> {
        let mut config = EndpointConfig::default();
        config.max_udp_payload_size(6_500)?;
        Ok(config)
    }

    fn socket(address: SocketAddr) -> Result<std::net::UdpSocket> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
        socket.bind(&address.into())?;
        socket.set_recv_buffer_size(4 << 20)?;
        socket.set_send_buffer_size(4 << 20)?;
        Ok(socket.into())
    }

    fn transport() -> Arc<TransportConfig> {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(6_500);
        let mut config = TransportConfig::default();
        config
            .mtu_discovery_config(Some(discovery))
            .stream_receive_window(VarInt::from_u32(1 << 20))
            .send_window(32 << 20);
        Arc::new(config)
    }
}

const LOOPBACK: &str = "127.0.0.1:0";
