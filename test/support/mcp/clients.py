# Lists the tools of an MCP endpoint and calls one, with a client of somebody else: clients.py CLIENT URL NAME ARGUMENTS.
import asyncio
import json
import sys


def connect(client: str, url: str):
    if client == "fastmcp":
        from fastmcp import Client

        return Client(url)
    from mcp import Client

    return Client(url, mode=client.removeprefix("mcp-"))


async def main(client: str, url: str, name: str, fields: str) -> None:
    async with connect(client, url) as connected:
        listed = await connected.list_tools()
        tools = listed if isinstance(listed, list) else listed.tools
        result = await connected.call_tool(name, json.loads(fields))
        failed = getattr(result, "is_error", None) or getattr(result, "isError", False)
        structured = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)
        print(json.dumps({"names": [tool.name for tool in tools], "failed": bool(failed), "structured": structured}))


asyncio.run(main(*sys.argv[1:]))
