//! Machines without handlers on a byte stream.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{
    Client, ClientMachine, ClientOptions, Event, Server, ServerMachine, ServerOptions,
};
use mcp_sansio::protocol::Implementation;
use mcp_sansio::stream::{Action, Endpoint, OnEvent, StreamConnection, StreamSettings};
use mcp_sansio::{Instant, Revision, Revisions};

type Seen = Rc<RefCell<Vec<String>>>;

fn server() -> Server {
    Server::new(ServerOptions::new(Implementation::new("server", "1")), 1)
}

fn client() -> Client {
    let options = ClientOptions::new(Implementation::new("client", "1"));
    Client::new(options.revisions(Revisions::only(Revision::V2025_11_25)), 2, Instant::ZERO)
}

/// Returns the kind of an event.
fn name(event: &Event<'_>) -> String {
    let text = format!("{event:?}");
    text.split(['(', ' ', '{']).next().unwrap_or_default().into()
}

fn poll<E: Endpoint>(connection: &mut StreamConnection<'_, E, ()>, out: &mut Vec<u8>) -> Action {
    connection.reset_budget();
    loop {
        match connection.advance(&mut Context::from_waker(Waker::noop()), Instant::ZERO) {
            Action::Write => {
                connection.transmit(&mut |bytes| {
                    out.extend_from_slice(bytes);
                    bytes.len()
                });
                connection.handle_flushed();
            }
            action => return action,
        }
    }
}

fn read<E: Endpoint>(connection: &mut StreamConnection<'_, E, ()>, bytes: &mut Vec<u8>) {
    let space = connection.space();
    let length = bytes.len().min(space.len());
    space[..length].copy_from_slice(&bytes[..length]);
    bytes.drain(..length);
    connection.handle_read(Ok(length), Instant::ZERO);
}

#[test]
fn a_client_and_a_server_without_handlers_open_and_end_a_connection() {
    let (client_saw, server_saw) = (Seen::default(), Seen::default());
    let seen = Rc::clone(&client_saw);
    let on_event = move |event: Event<'_>, _: &mut Client, _: Instant| {
        seen.borrow_mut().push(name(&event));
    };
    let mut client =
        StreamConnection::new(OnEvent::new(client(), on_event), StreamSettings::DEFAULT);
    let seen = Rc::clone(&server_saw);
    let on_event = move |event: Event<'_>, machine: &mut Server, _: Instant| {
        seen.borrow_mut().push(name(&event));
        if let Event::Request(request) = event {
            let error = ErrorObject::method_not_found(request.method.as_str());
            machine.reject(request.handle, error, Instant::ZERO).unwrap();
        }
    };
    let mut server =
        StreamConnection::new(OnEvent::new(server(), on_event), StreamSettings::DEFAULT);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        assert_eq!(poll(&mut client, &mut up), Action::Wait);
        if !up.is_empty() {
            read(&mut server, &mut up);
        }
        assert_eq!(poll(&mut server, &mut down), Action::Wait);
        if !down.is_empty() {
            read(&mut client, &mut down);
        }
    }
    assert!(client.endpoint().machine().session().is_some());
    client.endpoint_mut().machine_mut().close(Instant::ZERO);
    assert_eq!(poll(&mut client, &mut up), Action::Close);
    server.handle_read(Ok(0), Instant::ZERO);
    assert_eq!(poll(&mut server, &mut down), Action::Close);
    assert_eq!(*client_saw.borrow(), ["Opened", "Closed"]);
    assert_eq!(*server_saw.borrow(), ["Opened", "Closed"]);
}

#[test]
fn framing_errors_reach_the_machine() {
    let seen = Seen::default();
    let events = Rc::clone(&seen);
    let endpoint = OnEvent::new(server(), move |event: Event<'_>, _: &mut Server, _: Instant| {
        events.borrow_mut().push(name(&event));
    });
    let mut line = [0; 8];
    let mut connection = StreamConnection::lent(endpoint, &mut line, StreamSettings::DEVICE);
    let (mut input, mut output) = (b"123456789\n".to_vec(), Vec::new());
    while !input.is_empty() {
        read(&mut connection, &mut input);
        assert_eq!(poll(&mut connection, &mut output), Action::Wait);
    }
    assert_eq!(*seen.borrow(), ["Violation"]);
    assert!(String::from_utf8(output).unwrap().contains("-32700"));
}

#[test]
fn a_client_that_detects_the_era_restarts_a_server_that_exits_on_the_probe() {
    let machine =
        Client::new(ClientOptions::new(Implementation::new("client", "1")), 2, Instant::ZERO);
    let mut connection = StreamConnection::<_, ()>::new(
        OnEvent::new(machine, |_: Event<'_>, _: &mut Client, _: Instant| {}),
        StreamSettings::DEFAULT,
    )
    .restarting();
    let mut output = Vec::new();
    assert_eq!(poll(&mut connection, &mut output), Action::Wait);
    assert!(String::from_utf8_lossy(&output).contains("server/discover"));
    connection.handle_read(Ok(0), Instant::ZERO);
    assert_eq!(poll(&mut connection, &mut output), Action::Restart);

    let mut connection =
        StreamConnection::<_, ()>::new(connection.into_endpoint(), StreamSettings::DEFAULT);
    output.clear();
    assert_eq!(poll(&mut connection, &mut output), Action::Wait);
    assert!(String::from_utf8_lossy(&output).contains("\"initialize\""));
}
