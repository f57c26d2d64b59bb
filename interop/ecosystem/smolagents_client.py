"""Converts the tools of a server on stdio for smolagents, and calls `echo`."""

import sys

from mcp import StdioServerParameters
from smolagents import ToolCollection

server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
with ToolCollection.from_mcp(server, trust_remote_code=True, structured_output=False) as offered:
    tools = {tool.name: tool for tool in offered.tools}
    print(f"{len(tools)} tools")
    print(tools["echo"](text="hi there"))
