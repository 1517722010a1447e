//! The socket of an endpoint.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
};

use socket2::{Domain, Protocol, Socket, Type};

/// A socket with room for `buffer` bytes in both directions, as far as the system grants it.
pub(super) fn open(address: SocketAddr, buffer: usize) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        // The other family can come in as well where no address is named.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())?;
    socket.set_recv_buffer_size(buffer)?;
    socket.set_send_buffer_size(buffer)?;
    let granted = socket.recv_buffer_size()?.min(socket.send_buffer_size()?);
    if granted < buffer {
        tracing::warn!(
            asked = buffer,
            granted,
            "the system grants little room for packets, which costs throughput: raise net.core.rmem_max and net.core.wmem_max"
        );
    }
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_bound_once() {
        let any = "127.0.0.1:0".parse().expect("an address");
        let first = open(any, 1 << 16).expect("some port is free");
        let address = first.local_addr().expect("bound");
        assert_eq!(open(address, 1 << 16).expect_err("taken").kind(), io::ErrorKind::AddrInUse);
        assert!(open("[::]:0".parse().expect("an address"), 1 << 16).is_ok());
    }
}
