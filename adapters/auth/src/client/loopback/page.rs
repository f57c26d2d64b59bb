/// A response to the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// The user has returned. The application tells whether the user signed in or declined.
    Welcome,
    /// The redirect does not answer a pending request.
    NotAsked,
    /// The path is not that of redirects.
    NotFound,
    /// The request is for another host.
    OtherHost,
    /// The request has another method than `GET`.
    OtherMethod,
    /// The request is not valid HTTP/1.
    Malformed,
    /// The request is longer than [`REQUEST_LENGTH_MAX`](super::REQUEST_LENGTH_MAX).
    TooLong,
}

impl Reply {
    /// Encodes the response, to be written before the connection is closed: a page without scripts,
    /// which is not cached and does not leak its address, since that contains a code. `application`
    /// is the name shown to the user.
    #[must_use]
    pub fn response(self, application: &str) -> Vec<u8> {
        let (status, allow, title, text) = match self {
            Self::Welcome => ("200 OK", "", "Welcome back", "You can close this window and return"),
            Self::NotAsked => (
                "400 Bad Request",
                "",
                "Not waited for",
                "This sign-in is unknown or already complete. Return",
            ),
            Self::NotFound => ("404 Not Found", "", "Not found", "There is nothing here. Return"),
            Self::OtherHost => {
                ("421 Misdirected Request", "", "Not found", "There is nothing here. Return")
            }
            Self::OtherMethod => {
                ("405 Method Not Allowed", "Allow: GET\r\n", "Not allowed", "Return")
            }
            Self::Malformed => ("400 Bad Request", "", "Not understood", "Return"),
            Self::TooLong => ("431 Request Header Fields Too Large", "", "Too long", "Return"),
        };
        let application = escape(application);
        // An (empty) icon keeps the browser from requesting one after the listener has closed.
        let page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <title>{title}</title><link rel=\"icon\" href=\"data:,\"></head>\n\
             <body><h1>{title}</h1><p>{text} to {application}.</p></body></html>\n"
        );
        let length = page.len();
        format!(
            "HTTP/1.1 {status}\r\n\
             {allow}\
             Content-Type: text/html; charset=utf-8\r\n\
             Content-Length: {length}\r\n\
             Connection: close\r\n\
             Cache-Control: no-store\r\n\
             Referrer-Policy: no-referrer\r\n\
             Content-Security-Policy: default-src 'none'; img-src data:; frame-ancestors 'none'\r\n\
             X-Content-Type-Options: nosniff\r\n\
             \r\n\
             {page}"
        )
        .into_bytes()
    }
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Reply; 7] = [
        Reply::Welcome,
        Reply::NotAsked,
        Reply::NotFound,
        Reply::OtherHost,
        Reply::OtherMethod,
        Reply::Malformed,
        Reply::TooLong,
    ];

    #[test]
    fn a_response_has_a_length_and_is_not_cacheable() {
        for reply in ALL {
            let response = String::from_utf8(reply.response("the tour")).unwrap();
            let (head, page) = response.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", page.len())), "{head}");
            for field in ["Connection: close", "Cache-Control: no-store", "Referrer-Policy: no-ref"]
            {
                assert!(head.contains(field), "{head}");
            }
            assert!(page.contains("the tour"), "{page}");
        }
    }

    #[test]
    fn the_name_of_the_application_is_text() {
        let response = Reply::Welcome.response("<script>\"&'");
        let response = String::from_utf8(response).unwrap();
        assert!(response.contains("to &lt;script&gt;&quot;&amp;&#39;."), "{response}");
    }
}
