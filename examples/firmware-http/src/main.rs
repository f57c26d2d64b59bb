//! An MCP server over HTTP in a bare loop on a Cortex-M3: the board mps2-an385 of QEMU.
//!
//! It has the service of `examples/firmware`; its own are the board and the connections. UART 0
//! reports why the device was reset.

#![no_std]
#![no_main]

extern crate alloc;

#[path = "../../firmware/src/clock.rs"]
mod clock;
mod ethernet;
#[path = "../../firmware/src/fault.rs"]
mod fault;
#[path = "../../firmware/src/heap.rs"]
mod heap;
mod lamp;
#[path = "../../firmware/src/register.rs"]
mod register;
#[path = "../../firmware/src/sensor.rs"]
mod sensor;
#[path = "../../firmware/src/service.rs"]
mod service;
mod socket;
#[path = "../../firmware/src/stack.rs"]
mod stack;
#[path = "../../firmware/src/timers.rs"]
mod timers;
mod uart;

use alloc::rc::Rc;
use core::time::Duration;

use cortex_m::Peripherals;
use cortex_m_rt::entry;
use mcp_sansio::Instant;
use mcp_sansio_embedded::http::{HttpServerOptions, ServerLimits, ServerTimeouts};
use mcp_sansio_embedded::{HttpAccess, HttpBuffers, HttpConnection, HttpService, NextPoll};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::tcp;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr, Ipv4Address};

use ethernet::Ethernet;
use sensor::Sensor;
use socket::Socket;
use timers::Timers;

/// The frequency of the processor.
const HERTZ: u32 = 25_000_000;

/// The size of the heap, in bytes.
///
/// The server needs two fifths of it when idle. A session takes two kilobytes, and the events that
/// it keeps.
const HEAP_SIZE: usize = 18 * 1024;

/// The number of connections. A client of the older revisions has two: its event stream and a
/// request.
const CONNECTIONS: usize = 4;

const PORT: u16 = 80;

/// The address of the device, as QEMU's network expects it. A real device asks by DHCP.
const ADDRESS: Ipv4Address = Ipv4Address::new(10, 0, 2, 15);
const ROUTER: Ipv4Address = Ipv4Address::new(10, 0, 2, 2);
const HARDWARE_ADDRESS: EthernetAddress = EthernetAddress([0x52, 0x54, 0, 0x12, 0x34, 0x56]);

/// The token that clients must send. A real device has one of its own, on its label.
const TOKEN: &str = match option_env!("FIRMWARE_TOKEN") {
    Some(token) => token,
    None => "0123456789abcdef",
};

const _: () = assert!(
    TOKEN.len() >= HttpAccess::TOKEN_LENGTH_MIN,
    "FIRMWARE_TOKEN needs at least 16 characters"
);

/// How long a head and a body may take to arrive, and how long a connection may be idle.
const RECEIVE_TIME: Duration = Duration::from_secs(5);

/// How long a client may take to close its side after the device has.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// The memory of a connection.
struct Memory {
    input: [u8; 1152],
    body: [u8; 1280],
    output: [u8; 528],
    received: [u8; 1024],
    sent: [u8; 1024],
}

static mut MEMORY: [Memory; CONNECTIONS] = [const {
    Memory {
        input: [0; 1152],
        body: [0; 1280],
        output: [0; 528],
        received: [0; 1024],
        sent: [0; 1024],
    }
}; CONNECTIONS];

static mut ETHERNET: Ethernet = Ethernet::new();

/// A connection, and the socket that it is for.
struct Client<'m> {
    connection: HttpConnection<'m>,
    socket: SocketHandle,
    /// Whether a client is connected.
    is_open: bool,
    /// When the socket is given up, once the device has closed it.
    closes: Option<Instant>,
}

#[entry]
fn main() -> ! {
    let peripherals = Peripherals::take().expect("taken once");
    heap::start();
    clock::start(peripherals.SYST);
    uart::start();
    Ethernet::start(HARDWARE_ADDRESS);
    let (memory, ethernet) = (&raw mut MEMORY, &raw mut ETHERNET);
    // SAFETY: `main` runs once, and nothing else accesses these.
    let (memory, ethernet) = unsafe { (&mut *memory, &mut *ethernet) };
    let (sensor, timers) = (Rc::new(Sensor::new()), Timers::default());
    let mut service = http_service(&sensor, &timers);
    let mut storage = [SocketStorage::EMPTY; CONNECTIONS];
    let mut sockets = SocketSet::new(&mut storage[..]);
    let mut clients = memory.each_mut().map(|memory| client(memory, &service, &mut sockets));
    let mut interface = interface(ethernet);
    let remote = service.handle();
    let mut shown = sensor.value();
    loop {
        let now = clock::now();
        sensor.advance(now);
        timers.wake_due(now);
        if sensor.value().abs_diff(shown) >= 4 {
            shown = sensor.value();
            // If the queue is full, the next change is reported instead.
            let _told = remote.resource_updated(service::TEMPERATURE);
        }
        let network_time =
            smoltcp::time::Instant::from_micros((now.as_nanos() / 1000).cast_signed());
        let _changed = interface.poll(network_time, ethernet, &mut sockets);
        let mut is_idle = service.poll(now) != NextPoll::Now;
        for client in &mut clients {
            is_idle &= client.poll(&mut service, &mut sockets, now);
        }
        let _changed = interface.poll(network_time, ethernet, &mut sockets);
        if is_idle && !service.is_woken() {
            // Until the next millisecond: the Ethernet controller buffers more frames than arrive
            // meanwhile.
            cortex_m::asm::wfi();
        }
    }
}

impl Client<'_> {
    /// Does the work of the connection. Returns whether it waits.
    fn poll(
        &mut self,
        service: &mut HttpService,
        sockets: &mut SocketSet<'_>,
        now: Instant,
    ) -> bool {
        let socket = sockets.get_mut::<tcp::Socket<'_>>(self.socket);
        if self.closes.is_some_and(|end| end <= now) {
            socket.abort();
        }
        if !socket.is_open() {
            self.closes = None;
            // It is closed, and the port is not 0.
            let _listens = socket.listen(PORT);
        }
        let is_connected = socket.is_active()
            && socket.state() != tcp::State::SynReceived
            && self.closes.is_none();
        if !is_connected {
            if core::mem::take(&mut self.is_open) {
                self.connection.reset(service, now);
            }
            return true;
        }
        if !core::mem::replace(&mut self.is_open, true)
            && let Some(remote) = socket.remote_endpoint()
        {
            self.connection.set_remote_address(remote.addr.into());
        }
        match self.connection.poll(service, &mut Socket(socket), now) {
            Ok(NextPoll::Wait(_)) => true,
            Ok(NextPoll::Now) => false,
            Ok(NextPoll::Closed) | Err(_) => {
                socket.close();
                (self.is_open, self.closes) = (false, Some(now + CLOSE_TIME));
                false
            }
        }
    }
}

// Not inlined, so that the stack used to build the server is released afterwards.
#[inline(never)]
fn http_service(sensor: &Rc<Sensor>, timers: &Timers) -> HttpService {
    let server = service::server(sensor, timers);
    // Requests through QEMU name this computer. A device in a network allows its own name, too:
    // `allow_host("thermometer.local")`.
    let mut timeouts = ServerTimeouts::default();
    timeouts.body = RECEIVE_TIME;
    // A client that disappears keeps one of the few sessions for so long.
    timeouts.session_idle = Duration::from_secs(60);
    let options = HttpServerOptions::new().limits(ServerLimits::SMALL).timeouts(timeouts);
    // Session ids are derived from it. Without a source of randomness they are secret only to those
    // who do not know the token, and those may not use a session either.
    let mut secret = [0; 32];
    for (to, from) in secret.iter_mut().zip(TOKEN.bytes().cycle()) {
        *to = from;
    }
    // Discards the error, whose text would take flash.
    match HttpService::new(&server, options, HttpAccess::Token(TOKEN.into()), secret, 0) {
        Ok(service) => service.head_timeout(RECEIVE_TIME),
        Err(_) => panic!("the names are valid, and so is the token"),
    }
}

#[inline(never)]
fn client<'m>(
    memory: &'m mut Memory,
    service: &HttpService,
    sockets: &mut SocketSet<'m>,
) -> Client<'m> {
    let Memory { input, body, output, received, sent } = memory;
    let Ok(connection) = service.connection(HttpBuffers { input, body, output }) else {
        panic!("the buffers are long enough")
    };
    let mut socket = tcp::Socket::new(
        tcp::SocketBuffer::new(&mut received[..]),
        tcp::SocketBuffer::new(&mut sent[..]),
    );
    // A client that disappears without a word is forgotten.
    socket.set_keep_alive(Some(smoltcp::time::Duration::from_secs(5)));
    socket.set_timeout(Some(smoltcp::time::Duration::from_secs(15)));
    socket.set_nagle_enabled(false);
    Client { connection, socket: sockets.add(socket), is_open: false, closes: None }
}

#[inline(never)]
fn interface(ethernet: &mut Ethernet) -> Interface {
    let config = Config::new(HARDWARE_ADDRESS.into());
    let mut interface = Interface::new(config, ethernet, smoltcp::time::Instant::ZERO);
    interface.update_ip_addrs(|addresses| {
        // There is room for one.
        let _added = addresses.push(IpCidr::new(IpAddress::Ipv4(ADDRESS), 24));
    });
    let _added = interface.routes_mut().add_default_ipv4_route(ROUTER);
    interface
}
