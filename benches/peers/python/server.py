"""The Python SDK in the comparison: `server documented stdio`."""

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("bench-server", version="1.0.0")


@server.tool(description="Sends the text back")
def echo(text: str) -> str:
    return text


@server.tool(description="Adds two numbers")
def add(a: float, b: float) -> str:
    return str(a + b)


@server.tool(description="Reports progress, step by step")
async def progress(ctx: Context, count: int) -> str:
    for step in range(1, count + 1):
        await ctx.report_progress(step, count)
    return f"{count} steps"


server.run(transport="stdio")
