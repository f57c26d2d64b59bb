//! The code of docs/guide/telemetry.md.

mod telemetry {
    fn main() -> Result<(), mcp_sansio_tokio::ClientError> {
        use mcp_sansio_telemetry::Telemetry;
        use mcp_sansio_tokio::{Call, Host, NoArguments, Server};
        use opentelemetry_sdk::metrics::SdkMeterProvider;
        use opentelemetry_sdk::propagation::TraceContextPropagator;
        use opentelemetry_sdk::trace::SdkTracerProvider;

        let tracers = SdkTracerProvider::builder().build();
        let meters = SdkMeterProvider::builder().build();
        let telemetry = Telemetry::new(&tracers, &meters).propagator(TraceContextPropagator::new());

        let server = Server::new("clock", "1.0.0")
            .tool("now", "The time", |_: Call<NoArguments>| "about noon")
            .observe_operations(telemetry.clone());
        let host = Host::new("editor", "1.0.0").observe_operations(telemetry);

        let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
        pair.run(client.call_tool("now", &NoArguments {}))?;
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod exporters {
    fn main() -> Result<(), Box<dyn std::error::Error>> {
        use mcp_sansio_telemetry::Telemetry;
        use opentelemetry_otlp::SpanExporter;
        use opentelemetry_sdk::metrics::SdkMeterProvider;
        use opentelemetry_sdk::propagation::TraceContextPropagator;
        use opentelemetry_sdk::trace::SdkTracerProvider;

        let exporter = SpanExporter::builder().with_http().build()?;
        let tracers = SdkTracerProvider::builder().with_batch_exporter(exporter).build();

        let registry = prometheus::Registry::new();
        let reader =
            opentelemetry_prometheus::exporter().with_registry(registry.clone()).build()?;
        let meters = SdkMeterProvider::builder().with_reader(reader).build();

        let telemetry = Telemetry::new(&tracers, &meters).propagator(TraceContextPropagator::new());

        // The answer to `GET /metrics`:
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather())?;

        let _ = (telemetry, text);
        Ok(())
    }
}

mod clients_that_are_not_trusted {
    fn main() {
        use mcp_sansio_telemetry::Telemetry;

        let telemetry = Telemetry::global().link_peers(true);

        let _ = telemetry;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod spans_of_tracing {
    fn main() {
        use mcp_sansio_telemetry::Telemetry;
        use mcp_sansio_tokio::{Call, NoArguments, Server};

        let server = Server::new("clock", "1.0.0")
            .tool("now", "The time", |_: Call<NoArguments>| {
                tracing::info!("asked for the time"); // In the span of the request.
                "about noon"
            })
            .observe_operations(Telemetry::tracing_only());

        let _ = server;
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
