//! A server of attributes alone: its tools return text, an image and an embedded resource, and a
//! typed error that the model can act on.

use mcp_sansio_tokio::protocol::{
    ContentBlock, EmbeddedResource, ImageContent, TextResourceContents,
};
use mcp_sansio_tokio::{self as mcp, HandlerError, Server, tool};

/// The colours, as red, green and blue.
const COLOURS: [(&str, [u8; 3]); 3] =
    [("red", [255, 0, 0]), ("green", [0, 128, 0]), ("blue", [0, 0, 255])];

/// Returns a colour by its name. The model reads the error.
fn find(name: &str) -> Result<[u8; 3], HandlerError> {
    let found = COLOURS.iter().find(|(known, _)| *known == name);
    found.map(|(_, rgb)| *rgb).ok_or_else(|| HandlerError::failed(format!("no colour {name:?}")))
}

/// Returns an image of one pixel, as a bitmap.
fn pixel([red, green, blue]: [u8; 3]) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    // The sizes of the file and of its two headers, one pixel by one, one plane of 24 bits.
    for number in [58_u32, 0, 54, 40, 1, 1, 24 << 16 | 1, 0, 4, 0, 0, 0, 0] {
        file.extend(number.to_le_bytes());
    }
    file.extend([blue, green, red, 0]);
    file
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Draws a colour
///
/// The result has the colour as text for the model, as an image, and as a resource to keep.
#[tool(read_only)]
async fn draw(
    /// `red`, `green` or `blue`
    colour: String,
) -> Result<Vec<ContentBlock>, HandlerError> {
    let rgb = find(&colour)?;
    let resource = TextResourceContents::new(format!("colour:///{colour}"), hex(rgb));
    Ok(vec![
        ContentBlock::from(format!("This is {colour}.")),
        ImageContent::from_bytes(&pixel(rgb), "image/bmp").into(),
        EmbeddedResource::new(resource).into(),
    ])
}

/// Describes a colour
#[tool(read_only)]
async fn describe(
    /// `red`, `green` or `blue`
    colour: String,
) -> Result<String, HandlerError> {
    Ok(hex(find(&colour)?))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), mcp::Error> {
    let server = Server::new("gallery", "1.0.0").add_item(draw_tool()).add_item(describe_tool());
    mcp::serve_stdio(server).await
}
