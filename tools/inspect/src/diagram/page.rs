//! The diagram as a self-contained HTML page without external files.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use super::text::{shortened, write_text};
use super::{Diagram, Kind, Row, Side};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The height of a row and the width of a lane in CSS pixels.
const ROW: usize = 30;
const LANE: usize = 12;

/// The maximum number of distinguishable lanes. Further exchanges share the last one.
const LANES_MAX: usize = 24;

/// The maximum length of a label in characters. The detail has the full text.
const LABEL_MAX: usize = 120;

/// Renders the page.
///
/// All peer input is escaped as text. Only the page's own script can run, because the content
/// security policy allows it by its hash.
#[must_use]
pub(crate) fn page(diagram: &Diagram) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, diagram);
    out
}

fn write_page(out: &mut String, diagram: &Diagram) -> fmt::Result {
    let digest = Sha256::digest(SCRIPT);
    let digest = BASE64_STANDARD.encode(digest);
    let (lane_of, lanes) = lanes(diagram);
    let width = lanes * LANE + 8;
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>"
    )?;
    write_text(out, &diagram.name);
    write!(out, "</title>\n<style>\n:root {{ --lanes: {width}px; }}\n{STYLE}</style>\n</head>\n")?;
    out.push_str("<body>\n<header>\n<h1>");
    write_text(out, &diagram.name);
    let (rows, exchanges) = (diagram.rows.len(), diagram.exchanges.len());
    let over = match exchanges {
        0 => "a byte stream".into(),
        1 => "one exchange".into(),
        _ => format!("{exchanges} exchanges"),
    };
    let side = word(diagram.recorded);
    write!(out, "</h1>\n<p>recorded at the {side}: {rows} rows over {over}</p>\n<p class=legend>")?;
    for (kind, name) in LEGEND {
        let class = class_of(*kind);
        write!(out, "<span class={class}><i style=\"color:var(--{class})\"></i>{name}</span>")?;
    }
    out.push_str("</p>\n</header>\n<main>\n<section class=chart>\n<div class=head>");
    out.push_str("<span class=at>seconds</span><span></span><span class=sides>");
    for side in [Side::Client, Side::Server] {
        let class = if side == diagram.recorded { " class=own" } else { "" };
        write!(out, "<span{class}>{}</span>", word(side))?;
    }
    out.push_str("</span></div>\n<ol class=rows>\n");
    let origin = diagram.rows.iter().find_map(|row| row.at).unwrap_or_default();
    let mut links = BTreeMap::new();
    for row in &diagram.rows {
        let lane = row.exchange.map(|exchange| (exchange, lane_of[exchange]));
        write_row(out, row, origin, lane, &mut links)?;
    }
    write_lanes(out, diagram, &lane_of, width)?;
    out.push_str(
        "</ol>\n</section>\n<aside>\n<h2>Point at a row</h2>\n<pre>A request, its answer, its \
         progress and its cancellation light up together, and so does the exchange that carries \
         them. Click keeps a row; the arrow keys go from row to row.</pre>\n</aside>\n</main>\n",
    );
    write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

const LEGEND: &[(Kind, &str)] = &[
    (Kind::Request, "request"),
    (Kind::Result, "result"),
    (Kind::Error, "error"),
    (Kind::Notification, "notification"),
    (Kind::Transport, "HTTP"),
    (Kind::Resumption, "resumption"),
    (Kind::Cut, "cut"),
];

const fn class_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Request => "request",
        Kind::Result => "result",
        Kind::Error => "error",
        Kind::Notification => "notification",
        Kind::Transport => "transport",
        Kind::Resumption => "resumption",
        Kind::Cut => "cut",
        Kind::Note => "note",
    }
}

const fn word(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// Assigns a lane to each exchange, so that concurrent exchanges are side by side. Returns the
/// lanes and their number.
fn lanes(diagram: &Diagram) -> (Vec<usize>, usize) {
    let mut free_from: Vec<usize> = Vec::new();
    let mut lane_of = Vec::new();
    for exchange in &diagram.exchanges {
        let (start, end) = exchange.rows;
        let found = free_from.iter().position(|free| *free <= start);
        let lane = match found {
            Some(lane) => lane,
            None if free_from.len() < LANES_MAX => {
                free_from.push(0);
                free_from.len() - 1
            }
            None => LANES_MAX - 1,
        };
        free_from[lane] = free_from[lane].max(end + 1);
        lane_of.push(lane);
    }
    (lane_of, free_from.len())
}

fn write_row(
    out: &mut String,
    row: &Row,
    origin: u64,
    lane: Option<(usize, usize)>,
    links: &mut BTreeMap<String, usize>,
) -> fmt::Result {
    let direction = if row.from == Side::Client { "right" } else { "left" };
    write!(out, "<li class=\"row {direction} {}\" tabindex=0", class_of(row.kind))?;
    if let Some(link) = &row.link {
        // Request ids come from the peer, so the attributes contain numbers instead.
        let next = links.len();
        let number = links.entry(link.clone()).or_insert(next);
        write!(out, " data-link={number}")?;
    }
    if let Some((exchange, _)) = lane {
        write!(out, " data-lane={exchange}")?;
    }
    out.push_str("><span class=at>");
    if let Some(at) = row.at {
        let micros = at.saturating_sub(origin) / 1000;
        write!(out, "{}.{:06}", micros / 1_000_000, micros % 1_000_000)?;
    }
    out.push_str("</span><span class=stage><b title=\"");
    write_text(out, &format!("{} (line {})", shortened(&row.label, LABEL_MAX), row.line));
    out.push_str("\">");
    write_text(out, &shortened(&row.label, LABEL_MAX));
    out.push_str("</b><u></u></span><pre>");
    write_text(out, &row.detail);
    out.push_str("</pre></li>\n");
    Ok(())
}

/// Draws each exchange as a bar next to its rows.
fn write_lanes(
    out: &mut String,
    diagram: &Diagram,
    lane_of: &[usize],
    width: usize,
) -> fmt::Result {
    let height = diagram.rows.len() * ROW;
    write!(out, "<svg class=lanes width={width} height={height} aria-hidden=true>")?;
    for ((number, exchange), lane) in diagram.exchanges.iter().enumerate().zip(lane_of) {
        let x = lane * LANE + LANE / 2;
        let (start, end) = (exchange.rows.0 * ROW + ROW / 2, exchange.rows.1 * ROW + ROW / 2);
        write!(
            out,
            "<line data-lane={number} x1={x} x2={x} y1={start} y2={}>",
            end.max(start + 1)
        )?;
        out.push_str("<title>");
        write_text(out, &exchange.name);
        out.push_str("</title></line>");
        if exchange.cut {
            let (left, right, top, bottom) = (x - 4, x + 4, end - 4, end + 4);
            write!(out, "<line class=cut x1={left} y1={top} x2={right} y2={bottom} />")?;
            write!(out, "<line class=cut x1={left} y1={bottom} x2={right} y2={top} />")?;
        }
    }
    out.push_str("</svg>");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagram::Diagram;

    /// Returns a recording of a peer that tries to inject markup.
    fn hostile() -> String {
        let text = r#"</pre><script>alert(1)</script><img src=x onerror=alert(1)>' \" &amp;"#;
        let start = format!(
            r#"{{"recording":2,"version":"1","machine":{{"client":{{"at":0,"options":{{"identity":{{"name":"{text}","version":"1"}}}}}}}}}}"#
        );
        let frames = [
            format!(
                r#"{{"json":{{"jsonrpc":"2.0","method":"{text}","params":{{"name":"{text}"}}}}}}"#
            ),
            format!(
                r#"{{"json":{{"jsonrpc":"2.0","id":"{text}","error":{{"code":1,"message":"{text}"}}}}}}"#
            ),
            format!(r#"{{"text":"{text}"}}"#),
        ];
        let lines = frames.map(|it| {
            format!(r#"{{"message":{{"at":1,"frame":{it},"event":"violation: {text}"}}}}"#)
        });
        [&[start][..], &lines].concat().join("\n")
    }

    #[test]
    fn peer_input_is_escaped() {
        let drawn = page(&Diagram::read(hostile().as_bytes()).unwrap());
        assert_eq!(drawn.matches("<script").count(), 1);
        assert_eq!(drawn.matches("<img").count(), 0);
        assert!(drawn.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
        // Each tag contains only the attributes of the page. Quoted text is a value.
        for (tag, _) in drawn.split('<').skip(1).filter_map(|rest| rest.split_once('>')) {
            let names: String = tag.split('"').step_by(2).collect();
            assert!(!names.contains("onerror") && !names.contains("alert"), "{tag}");
        }
    }

    #[test]
    fn the_page_has_no_external_references() {
        let drawn = page(&Diagram::read(hostile().as_bytes()).unwrap());
        for outside in ["http://", "https://", "url(", "@import", "src=\"", "href="] {
            assert!(!drawn.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_policy_allows_exactly_the_script() {
        let drawn = page(&Diagram::read(hostile().as_bytes()).unwrap());
        let script = drawn.split("<script>").nth(1).unwrap().split("</script>").next().unwrap();
        let digest = Sha256::digest(script.as_bytes());
        assert!(drawn.contains(&format!("'sha256-{}'", BASE64_STANDARD.encode(digest))));
    }
}
