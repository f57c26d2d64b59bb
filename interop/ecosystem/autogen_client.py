"""Converts the tools of a server on stdio for AutoGen, and calls `echo`."""

import asyncio
import sys

from autogen_core import CancellationToken
from autogen_ext.tools.mcp import StdioServerParams, mcp_server_tools


async def main():
    command, *args = sys.argv[1:]
    offered = await mcp_server_tools(StdioServerParams(command=command, args=args))
    tools = {tool.name: tool for tool in offered}
    print(len([tool.schema for tool in offered]), "tools")
    result = await tools["echo"].run_json({"text": "hi there"}, CancellationToken())
    print(tools["echo"].return_value_as_string(result))


asyncio.run(main())
