"""A program that steers Ralph by an official client of MCP, of either SDK; it is run with that on
its path. It prints what it saw as JSON."""

import json
import sys
from contextlib import asynccontextmanager

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

AGENT_WAITS_FOR, LONG = "go", 50


@asynccontextmanager
async def connected(mode, server):
    """A session by the SDK of 1.x, or the client of 2.x in one of its modes."""
    if mode == "1.x":
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            told = await session.initialize()
            yield session, told.protocolVersion
        return
    from mcp.client.client import Client

    async with Client(server if isinstance(server, str) else stdio_client(server), mode=mode) as it:
        yield it, it.session.protocol_version


async def main(mode, ralph, directory, state):
    seen, news = {}, []

    async def told(done, total, words):
        news.append([done, total, words])

    server = StdioServerParameters(
        command=ralph[0], args=[*ralph[1:], "mcp", "--root", directory], env=state
    )
    async with connected(mode, server) as (client, version):
        seen["version"] = version

        async def call(name, **given):
            answer = await client.call_tool(name, given)
            known = answer.model_dump(by_alias=True)
            text = "".join(part["text"] for part in known["content"])
            return {"text": text, "data": known["structuredContent"], "failed": known["isError"]}

        seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        seen["begun"] = await call("start", prompt="Do it", max_iterations=3)
        run = seen["begun"]["data"]["run"]
        order = []
        async with anyio.create_task_group() as both:

            async def waits():
                # `ended` comes when the agent does, long after a status that was asked later.
                answer = await client.call_tool(
                    "wait", {"run": run, "seconds": LONG}, progress_callback=told
                )
                order.append("wait")
                known = answer.model_dump(by_alias=True)
                seen["waited"] = known["structuredContent"]

            both.start_soon(waits)
            await anyio.sleep(0.2)
            with anyio.move_on_after(0.3):  # a call that is given up
                await client.call_tool("wait", {"run": run, "seconds": LONG})
            seen["status"] = await call("status", run=run)
            order.append("status")
            while not news:
                await anyio.sleep(0.1)
            await (anyio.Path(directory) / AGENT_WAITS_FOR).touch()
        seen["order"], seen["news"] = order, news
        seen["log"] = await call("log", since="0.0")
        seen["wrong"] = await call("wait", seconds=3600)
        seen["outside"] = await call("start", prompt="x", directory="/")
        try:
            seen["unknown"] = await call("dance")
        except Exception as error:  # of either SDK
            seen["unknown"] = str(error)
    print(json.dumps(seen))


anyio.run(main, sys.argv[1], *map(json.loads, sys.argv[2:]))
