//! Transports to copy into a program, each in one file. The tests run all of them through
//! `mcp_sansio_test::transport::check`.
//!
//! | Module | Carries messages over | Needs |
//! | --- | --- | --- |
//! | [`websocket`] | text frames of a WebSocket, either role | tokio, `tokio-tungstenite` |
//! | [`packets`] | COBS or SLIP packets with a checksum, on a serial line | tokio |
//! | [`gatt`] | writes and notifications of Bluetooth Low Energy | nothing: no I/O, `core` only |
//! | `mqtt` | topics of an MQTT 5 broker | tokio, `rumqttc` |

#![forbid(unsafe_code)]

pub mod gatt;
#[cfg(feature = "mqtt")]
pub mod mqtt;
pub mod packets;
pub mod websocket;
