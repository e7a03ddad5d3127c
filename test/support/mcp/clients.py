# Lists the tools of MCP endpoints and calls one of each, with a client of somebody else: clients.py CLIENT CALLS, where
# CALLS is a JSON list of [URL, NAME, ARGUMENTS]. Writes a JSON list of outcomes.
import asyncio
import json
import sys


def connect(client: str, url: str):
    if client == "fastmcp":
        from fastmcp import Client

        return Client(url)
    from mcp import Client

    return Client(url, mode=client.removeprefix("mcp-"))


async def call(client: str, url: str, name: str, fields: dict) -> dict:
    async with connect(client, url) as connected:
        listed = await connected.list_tools()
        tools = listed if isinstance(listed, list) else listed.tools
        result = await connected.call_tool(name, fields)
        failed = getattr(result, "is_error", None) or getattr(result, "isError", False)
        structured = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)
        return {"names": [tool.name for tool in tools], "failed": bool(failed), "structured": structured}


async def main(client: str, calls: str) -> None:
    print(json.dumps([await call(client, *each) for each in json.loads(calls)]))


asyncio.run(main(*sys.argv[1:]))
