use mcp_sansio_macros::tool;

/// Reads a file
#[tool]
fn read(path: String) -> Result<String, std::io::Error> {
    std::fs::read_to_string(path)
}

fn main() {
    let _tool = read_tool();
}
