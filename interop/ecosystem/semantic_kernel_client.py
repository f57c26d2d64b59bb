"""Converts the tools of a server on stdio for Semantic Kernel, and calls `echo`."""

import asyncio
import sys

from semantic_kernel import Kernel
from semantic_kernel.connectors.mcp import MCPStdioPlugin


async def main():
    command, *args = sys.argv[1:]
    async with MCPStdioPlugin(name="server", command=command, args=args) as plugin:
        kernel = Kernel()
        kernel.add_plugin(plugin)
        print(len(kernel.get_full_list_of_function_metadata()), "functions")
        print(await kernel.invoke(plugin_name="server", function_name="echo", text="hi there"))


asyncio.run(main())
