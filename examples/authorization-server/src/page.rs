//! The consent page.

use super::grants::Consent;
use super::metadata::APPROVAL;

/// Renders a page that asks whether to grant the consent to the client called `name`. `id`
/// identifies the request.
pub(super) fn question(name: &str, consent: &Consent, id: &str) -> String {
    let permission = &consent.permission;
    let [name, resource, scopes, redirect_uri, id] =
        [name, &permission.resource, &permission.scopes.join(", "), &consent.redirect_uri, id]
            .map(escape);
    format!(
        r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Sign in</title>
<h1>Sign in</h1>
<p><b>{name}</b> wants to use <b>{resource}</b> in your name: {scopes}.
<p>You will be sent to {redirect_uri}.
<form method="post" action="{APPROVAL}">
<input type="hidden" name="request" value="{id}">
<button name="answer" value="approve">Approve</button>
<button name="answer" value="deny">Deny</button>
</form>
"#
    )
}

/// Renders an error page for requests that cannot be redirected to a client.
pub(super) fn refusal(description: &str) -> String {
    let description = escape(description);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <title>Cannot sign in</title>\n<h1>Cannot sign in</h1>\n<p>The request is wrong: \
         {description}.\n"
    )
}

/// Escapes a text for HTML, including attribute values.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_input_is_escaped() {
        assert_eq!(escape("<a href='x'>\"&\""), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;");
    }
}
