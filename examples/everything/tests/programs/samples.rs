//! The sample programs print the expected output.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::process::{example, run};

#[test]
fn the_weather_is_sunny() {
    for (client, server) in
        [("weather-client", "weather-server"), ("weather-client-std", "weather-server-std")]
    {
        let outcome = run(client, [example(server)]);
        assert_eq!(outcome.stdout, "Sunny in Oslo\n", "{outcome:?}");
        assert_eq!(outcome.stderr, "1 of 2\n");
    }
}

#[test]
fn the_bare_loop_supports_both_eras() {
    for revision in ["2024-11-05", "2026-07-28"] {
        let server = example("bare-loop");
        let words = ["call", "shout", r#"{"text":"hi"}"#, "--revision", revision, "--"];
        let outcome = run("mcp-inspect", words.into_iter().chain(server.to_str()));
        assert_eq!(outcome.stdout, "HI\n", "{outcome:?}");
    }
}

#[test]
fn custom_transports_support_both_eras() {
    let outcome = run("message-queue", [] as [&str; 0]);
    assert_eq!(outcome.stdout, "1 of 1\nseueuq\n", "{outcome:?}");
    for seed in ["1", "2"] {
        let outcome = run("serial-line", [seed]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        for revision in ["2025-11-25", "2026-07-28"] {
            let words = format!("{revision}: 21.5 °C. Set to 22 °C.\n");
            assert!(outcome.stdout.contains(&words), "{outcome:?}");
        }
    }
    assert_eq!(run("serial-line", ["loud"]).code, Some(1));
}

#[test]
fn every_step_of_the_benchmark_is_reported() {
    let server = example("bench-server");
    for runtime in crate::process::RUNTIMES {
        let words = ["call", "progress", r#"{"count":3000}"#, "--", server.to_str().unwrap()];
        let outcome =
            run("mcp-inspect", words.into_iter().chain(["--stdio", "--runtime", runtime]));
        assert_eq!(outcome.stdout, "3000 steps\n");
        assert_eq!(outcome.stderr.lines().count(), 3000);
        let words = ["read", "mem://blob", "--", server.to_str().unwrap()];
        let outcome =
            run("mcp-inspect", words.into_iter().chain(["--stdio", "--runtime", runtime]));
        assert_eq!(outcome.stdout.len(), 64 * 1024 + 1);
    }
}

#[test]
fn one_of_three_servers_is_killed_and_comes_back() {
    let outcome = run("three-servers", [] as [&str; 0]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let weather =
        ["lima", "oslo", "pune"].map(|city| format!("  {city}_weather: Sunny in {city}\n"));
    let whole = weather.concat();
    let partial = format!("{}{}  the server \"oslo\" is not connected", weather[0], weather[2]);
    let (before, after) = outcome.stdout.split_once("oslo_crash: ").expect("the crash");
    assert!(before.ends_with(&whole), "{outcome:?}");
    assert!(after.contains(&partial) && after.ends_with(&whole), "{outcome:?}");
}

#[test]
fn the_servers_in_a_configuration_file_are_one() {
    let file = std::env::temp_dir().join(format!("servers-{}.json", std::process::id()));
    let server = example("three-servers");
    let text = format!(
        r#"{{ "mcpServers": {{
            "north": {{ "command": "{0}", "args": ["${{NORTH:-oslo}}"] }},
            "south": {{ "command": "{0}", "args": ["lima"], "autoApprove": [] }},
            "lost": {{ "command": "/no/such/server" }}
        }} }}"#,
        server.to_str().unwrap()
    );
    std::fs::write(&file, text).unwrap();
    let listed = run("configured-servers", [&*file]);
    let called = run("configured-servers", [file.to_str().unwrap(), "south_weather"]);
    let inspect =
        |name| run("mcp-inspect", ["--config", file.to_str().unwrap(), name, "call", "weather"]);
    let (inspected, unknown) = (inspect("north"), inspect("east"));
    std::fs::remove_file(&file).unwrap();
    let tools = ["north", "south"]
        .map(|name| format!("{name}_weather: The weather\n{name}_crash: Ends the server\n"));
    assert_eq!(listed.stdout, tools.concat(), "{listed:?}");
    assert!(listed.stderr.starts_with("not used: mcpServers.south.autoApprove\n"), "{listed:?}");
    assert!(listed.stderr.contains("\"lost\" is not connected: cannot start"), "{listed:?}");
    assert_eq!(called.stdout, "Sunny in lima\n", "{called:?}");
    assert_eq!(inspected.stdout, "Sunny in oslo\n", "{inspected:?}");
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("no server of this name, but lost, north, south"),
        "{unknown:?}"
    );
}

#[test]
fn a_model_calls_the_tools_of_the_servers_until_it_answers() {
    let file = std::env::temp_dir().join(format!("chat-{}.json", std::process::id()));
    let text = format!(
        r#"{{ "mcpServers": {{ "north": {{ "command": "{}" }}, "pictures": {{ "command": "{}" }} }} }}"#,
        example("weather-server").to_str().unwrap(),
        example("gallery").to_str().unwrap()
    );
    std::fs::write(&file, text).unwrap();
    let mut host = Command::new(example("chat-host"))
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let questions =
        "north_forecast Oslo\nhello\npictures_describe nothing\npictures_describe red\n";
    host.stdin.take().unwrap().write_all(questions.as_bytes()).unwrap();
    let output = host.wait_with_output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let answers = "Sunny in Oslo\n\
        I have north_forecast, pictures_draw, pictures_describe.\n\
        That failed: no colour \"nothing\"\n\
        #ff0000\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), answers);
    assert!(output.status.success());
}

#[test]
fn a_gallery_draws_an_image_and_embeds_a_resource() {
    let server = example("gallery");
    let words = ["call", "draw", r#"{"colour":"red"}"#, "--json", "--"];
    let outcome = run("mcp-inspect", words.into_iter().chain(server.to_str()));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let result: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let kinds = ["text", "image", "resource"];
    for (index, kind) in kinds.into_iter().enumerate() {
        assert_eq!(result["content"][index]["type"], kind, "{outcome:?}");
    }
    assert_eq!(result["content"][1]["mimeType"], "image/bmp");
    assert_eq!(result["content"][2]["resource"]["uri"], "colour:///red");
}
