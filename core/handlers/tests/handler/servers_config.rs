//! Servers from the JSON that hosts share.

use mcp_sansio_handlers::{ServerSpec, ServersConfig};

fn parse(text: &str) -> ServersConfig {
    let variable = |name: &str| match name {
        "HOME" => Some("/home/ann".to_owned()),
        "EMPTY" => Some(String::new()),
        "input:token" => Some("secret".to_owned()),
        _ => None,
    };
    ServersConfig::parse(text, variable).unwrap()
}

/// Returns the error of the entry `x`, whose members are given.
fn error(members: &str) -> String {
    let config = parse(&format!(r#"{{"mcpServers":{{"good":{{"command":"a"}},"x":{members}}}}}"#));
    assert!(config.servers["good"].is_ok(), "an entry hides another one");
    config.servers["x"].as_ref().unwrap_err().to_string()
}

#[test]
fn programs_and_urls_are_read_with_their_variables() {
    let config = parse(
        r#"{
            "mcpServers": {
                "files": {
                    "command": "${HOME}/bin/files", "cwd": "${env:HOME}/${SUB:-notes}",
                    "args": ["-v", "${HOME}${EMPTY:-x}:${NONE:-}", "a$b", "${"],
                    "env": { "ROOT": "${HOME}", "PORT": 8080, "GONE": null },
                    "type": "stdio", "autoApprove": ["read"]
                },
                "off": { "command": "${NONE}", "disabled": true },
                "out": { "args": 7, "enabled": false }
            },
            "servers": {
                "weather": {
                    "type": "http", "url": "HTTPS://mcp.example.com/${PATH:-mcp}",
                    "headers": { "Authorization": "Bearer ${input:token}" }, "command": null
                },
                "old": { "type": "sse", "url": "http://127.0.0.1/sse", "disabled": false }
            },
            "inputs": []
        }"#,
    );
    assert_eq!(config.servers.keys().collect::<Vec<_>>(), ["files", "old", "weather"]);
    let Ok(ServerSpec::Process { command, args, env, cwd }) = &config.servers["files"] else {
        panic!("{config:?}")
    };
    assert_eq!((&**command, cwd.as_deref()), ("/home/ann/bin/files", Some("/home/ann/notes")));
    assert_eq!(args, &["-v", "/home/ann:", "a$b", "${"]);
    let env: Vec<_> = env.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(env, [("PORT", "8080"), ("ROOT", "/home/ann")]);
    let Ok(ServerSpec::Http { url, headers }) = &config.servers["weather"] else {
        panic!("{config:?}")
    };
    assert_eq!(url, "HTTPS://mcp.example.com/mcp");
    assert_eq!(headers["Authorization"], "Bearer secret");
    assert!(matches!(&config.servers["old"], Ok(ServerSpec::Http { .. })));
    assert_eq!(config.disabled, ["off", "out"]);
    assert_eq!(config.ignored, ["mcpServers.files.autoApprove", "inputs"]);
    let debug = format!("{config:?}");
    assert!(!debug.contains("secret") && !debug.contains("8080"), "{debug}");
}

#[test]
fn a_defect_names_its_entry_and_member_and_hides_no_other_entry() {
    let long = r#"{"command":"a","url":"http://a"}"#;
    for (members, expected) in [
        ("7", "`mcpServers.x`: not an object"),
        ("{}", "`mcpServers.x`: neither `command` nor `url` is given"),
        (long, "`mcpServers.x`: both `command` and `url` are given; `type` says which counts"),
        (r#"{"command":7}"#, "`mcpServers.x.command`: not a string"),
        (r#"{"command":""}"#, "`mcpServers.x.command`: missing"),
        (r#"{"command":"a","command":"b"}"#, "`mcpServers.x.command`: given twice"),
        (r#"{"command":"a","args":"b"}"#, "`mcpServers.x.args`: not an array"),
        (r#"{"command":"a","args":["b",7]}"#, "`mcpServers.x.args[1]`: not a string"),
        (r#"{"command":"a","env":[]}"#, "`mcpServers.x.env`: not an object"),
        (r#"{"command":"a","env":{"K":true}}"#, "`mcpServers.x.env.K`: not a string"),
        (
            r#"{"command":"a","env":{"K":"${NONE}"}}"#,
            "`mcpServers.x.env.K`: the variable `NONE` is not set and has no default",
        ),
        (r#"{"type":"stdio","url":"http://a"}"#, "`mcpServers.x.command`: missing"),
        (r#"{"type":"http","command":"a"}"#, "`mcpServers.x.url`: missing"),
        (
            r#"{"type":"ws","url":"ws://a"}"#,
            "`mcpServers.x.type`: `ws` is not `stdio`, `http` or `sse`",
        ),
        (
            r#"{"command":"a","disabled":"true"}"#,
            "`mcpServers.x.disabled`: neither `true` nor `false`",
        ),
        (r#"{"command":"a","enabled":0}"#, "`mcpServers.x.enabled`: neither `true` nor `false`"),
        (r#"{"url":"ftp://a"}"#, "`mcpServers.x.url`: not an `http:` or `https:` URL"),
        (
            r#"{"url":"http://a","headers":{"Host":"b"}}"#,
            "`mcpServers.x.headers.Host`: the header `host` is set by the client itself",
        ),
    ] {
        assert_eq!(error(members), expected);
    }
    let config = parse(r#"{"servers":{"a":{"command":"b"},"a":{"command":"c"}}}"#);
    let error = config.servers["a"].as_ref().unwrap_err();
    assert_eq!(error.to_string(), "`servers.a`: there are two entries of this name");
    assert_eq!(error.place, "servers.a");
    // One that is disabled does not count, in whichever list it is.
    let (on, off) = (r#"{"a":{"command":"a"}}"#, r#"{"a":{"command":"b","disabled":true}}"#);
    for (first, second) in [(on, off), (off, on)] {
        let config = parse(&format!(r#"{{"mcpServers":{first},"servers":{second}}}"#));
        assert!(config.servers["a"].is_ok(), "{first} {second}");
        assert_eq!(config.disabled, ["a"]);
    }
}

#[test]
fn a_text_that_is_no_configuration_is_refused_with_its_defect() {
    let refused = |text: &str| ServersConfig::parse(text, |_| None).unwrap_err().to_string();
    let error = refused("{\n  \"mcpServers\": {},,\n}");
    assert_eq!(error, "the configuration is not JSON: key must be a string at line 2 column 20");
    for text in ["[]", "{}", r#"{"mcp":{"servers":{}}}"#] {
        let missing = "the configuration has no member `mcpServers` or `servers`";
        assert_eq!(refused(text), missing);
    }
    assert_eq!(refused(r#"{"mcpServers":[]}"#), "`mcpServers`: not an object");
    assert!(refused("").starts_with("the configuration is not JSON: EOF"));
    assert!(parse("\u{feff}{\"mcpServers\":{}}\r\n").servers.is_empty());
}

#[test]
fn the_type_of_a_server_is_read_in_every_spelling_of_hosts() {
    let config = parse(
        r#"{"mcpServers":{
            "a": { "command": "a", "url": "http://a", "type": "STDIO" },
            "b": { "command": "a", "type": "" }, "c": { "url": "http://a", "type": "" },
            "d": { "command": "a", "url": "http://a", "type": "Streamable_HTTP" },
            "e": { "command": "a", "url": "http://a", "type": "streamableHttp" },
            "f": { "command": "a", "url": "http://a", "type": "local", "tools": ["*"] },
            "g": { "command": "a", "url": "http://a", "transport": "streamable_http" },
            "h": { "transportType": "stdio", "command": "a", "url": "http://a" },
            "i": { "transport": "sse", "command": "a", "url": "http://a", "type": "stdio" },
            "j": { "command": "a", "transport": { "port": 1 } },
            "k": { "transport": "stdio", "type": "", "command": "a", "url": "http://a" },
            "l": { "url": "http://a", "transport": "" }
        }}"#,
    );
    let is_process = |spec: &Result<_, _>| matches!(spec, Ok(ServerSpec::Process { .. }));
    let kinds: Vec<_> = config.servers.values().map(is_process).collect();
    assert_eq!(
        kinds,
        [true, true, false, false, false, true, false, true, true, true, true, false]
    );
    assert_eq!(config.ignored, ["mcpServers.f.tools", "mcpServers.j.transport"]);
    assert!(config.servers.values().all(Result::is_ok), "{config:?}");
}

#[test]
fn the_url_of_a_server_has_the_names_that_hosts_give_it() {
    for name in ["url", "serverUrl", "httpUrl"] {
        let config = parse(&format!(r#"{{"mcpServers":{{"a":{{"{name}":"${{X:-http://a}}"}}}}}}"#));
        let Ok(ServerSpec::Http { url, .. }) = &config.servers["a"] else { panic!("{config:?}") };
        assert_eq!(url, "http://a");
        assert!(config.ignored.is_empty(), "{config:?}");
    }
    let error = error(r#"{"url":"http://a/sse","httpUrl":"http://a/mcp"}"#);
    assert_eq!(error, "`mcpServers.x.httpUrl`: given twice");
}

#[test]
fn comments_and_trailing_commas_are_skipped() {
    let config = parse(
        r#"// My servers: { "mcpServers"
        {
            /* "mcpServers": {},
               ü */
            "mcpServers": {
                "a": { "command": "/*a*/", "args": ["http://b", "\\", "\"//", "c,]", /* d */], }, // e
            } /**/ , // f
        } // g"#,
    );
    let Ok(ServerSpec::Process { command, args, .. }) = &config.servers["a"] else {
        panic!("{config:?}")
    };
    assert_eq!(command, "/*a*/");
    assert_eq!(args, &["http://b", "\\", "\"//", "c,]"]);
    assert!(config.ignored.is_empty(), "{config:?}");

    let refused = |text: &str| ServersConfig::parse(text, |_| None).unwrap_err().to_string();
    for text in
        [r#"{,}"#, r#"{"servers":,}"#, r#"{"servers":{}}/*"#, r#"{"servers":{}}/"#, r#"{"servers"#]
    {
        assert!(refused(text).starts_with("the configuration is not JSON: "), "{text}");
    }
    // Places are those of the text.
    let error = refused("/* ü\n*/ {\"servers\":{}, // b\n  7}");
    assert_eq!(error, "the configuration is not JSON: key must be a string at line 3 column 3");
}
