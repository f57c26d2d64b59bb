//! The code blocks in the guide and in `README.md`, one module for each page: `cargo test --doc -p guide`
//! compiles and runs them.

#![forbid(unsafe_code)]
#![cfg(doctest)]

#[doc = include_str!("../README.md")]
mod readme {}
#[doc = include_str!("../adapters/tokio/README.md")]
mod readme_of_tokio {}
#[doc = include_str!("../adapters/async-std/README.md")]
mod readme_of_async_std {}
#[doc = include_str!("../adapters/std/README.md")]
mod readme_of_std {}

#[doc = include_str!("guide/getting-started.md")]
mod getting_started {}
#[doc = include_str!("guide/servers.md")]
mod servers {}
#[doc = include_str!("guide/tools.md")]
mod tools {}
#[doc = include_str!("guide/resources.md")]
mod resources {}
#[doc = include_str!("guide/attributes.md")]
mod attributes {}
#[doc = include_str!("guide/clients.md")]
mod clients {}
#[doc = include_str!("guide/several-servers.md")]
mod several_servers {}
#[doc = include_str!("guide/input-rounds.md")]
mod input_rounds {}
#[doc = include_str!("guide/tasks-and-subscriptions.md")]
mod tasks_and_subscriptions {}
#[doc = include_str!("guide/middleware.md")]
mod middleware {}
#[doc = include_str!("guide/extensions.md")]
mod extensions {}
#[doc = include_str!("guide/apps.md")]
mod apps {}
#[doc = include_str!("guide/skills.md")]
mod skills {}
#[doc = include_str!("guide/http.md")]
mod http {}
#[doc = include_str!("guide/authorization.md")]
mod authorization {}
#[doc = include_str!("guide/telemetry.md")]
mod telemetry {}
#[doc = include_str!("guide/testing.md")]
mod testing {}
#[doc = include_str!("guide/deployment.md")]
mod deployment {}
#[doc = include_str!("guide/cluster.md")]
mod cluster {}
#[doc = include_str!("guide/devices.md")]
mod devices {}

#[doc = include_str!("guide/coming-from-rmcp.md")]
mod coming_from_rmcp {}

#[doc = include_str!("guide/coming-from-typescript.md")]
mod coming_from_typescript {}

#[doc = include_str!("guide/custom-transport.md")]
mod custom_transport {}

#[doc = include_str!("guide/recording.md")]
mod recording {}

#[doc = include_str!("guide/memory.md")]
mod memory {}
