"""A FastMCP server on HTTP that is its own authorization server, with scopes. The argument is its port."""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions

port = int(sys.argv[1])
server = FastMCP(
    "protected",
    auth=InMemoryOAuthProvider(
        base_url=f"http://127.0.0.1:{port}",
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["read", "write"]),
        required_scopes=["read"],
    ),
)


@server.tool
def echo(text: str) -> str:
    return text


server.run(transport="http", host="127.0.0.1", port=port, show_banner=False)
