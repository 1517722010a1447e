//! How QUIC is set: what was measured, and the traps that were found on the way.
//!
//! Packets of 6,500 bytes where the path takes them halve the cost of small ones. Beyond some 6,550 ten segments handed
//! over at once exceed what one call of the system takes, and nothing would arrive. A path is only asked for its size by
//! probing, never assumed, and whoever receives has to allow it. Windows of streams stay below 2 MB, as readers that lag would lose their connection otherwise.

use std::{sync::Arc, time::Duration};

use quinn::{EndpointConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use super::EndpointOptions;

/// For the endpoint itself: it says how large packets may be that are sent to it.
pub(super) fn endpoint() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(LARGEST_PACKET).expect("more than every path has to take");
    config
}

/// For whoever connects, before it is known what for.
pub(super) fn server(options: &EndpointOptions) -> Arc<TransportConfig> {
    // What the other end asks for counts if it is shorter, and it keeps the connection alive.
    Arc::new(common(options.data_idle_timeout))
}

/// For control connections that this process opens.
pub(super) fn control(options: &EndpointOptions) -> Arc<TransportConfig> {
    let mut config = common(options.control_idle_timeout);
    config.max_concurrent_bidi_streams(VarInt::from_u32(0));
    Arc::new(config)
}

/// For connections that rows travel over and that this process opens.
pub(super) fn data(options: &EndpointOptions) -> Arc<TransportConfig> {
    Arc::new(common(options.data_idle_timeout))
}

fn common(idle: Duration) -> TransportConfig {
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(LARGEST_PACKET);
    let mut config = TransportConfig::default();
    config
        .max_idle_timeout(IdleTimeout::try_from(idle).ok())
        .keep_alive_interval(Some(idle / KEEP_ALIVES))
        .mtu_discovery_config(Some(discovery))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(u64::from(WINDOW))
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(None);
    config
}

const LARGEST_PACKET: u16 = 6_500;
const STREAM_WINDOW: u32 = 1 << 20;
/// What may be under way on all streams of a connection, and be kept of a peer that sends without being asked.
const WINDOW: u32 = 32 << 20;
/// How often a peer is asked for a sign of life before it is held to be lost.
const KEEP_ALIVES: u32 = 4;
