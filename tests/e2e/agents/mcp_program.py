"""A program that steers Ralph by an official client of MCP, of either SDK: it is run with that on
its path, and prints what it saw as JSON."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

LONG = 50
Json = dict[str, Any]


@asynccontextmanager
async def connected(mode: str, server: StdioServerParameters) -> AsyncIterator[tuple[Any, str]]:
    """A session of 1.x, or the client of 2.x in one of its modes; and the version they speak."""
    if mode == "1.x":
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            told = await session.initialize()
            yield session, told.protocolVersion
        return
    from mcp.client.client import Client

    async with Client(stdio_client(server), mode=mode) as client:
        yield client, client.protocol_version


async def called(client: Any, tool: str, **given: Any) -> Json:  # noqa: ANN401
    answer = (await client.call_tool(tool, given)).model_dump(by_alias=True)
    text = "".join(part["text"] for part in answer["content"])
    return {"text": text, "data": answer["structuredContent"], "failed": answer["isError"]}


async def while_it_waits(client: Any, run: str, go: str) -> Json:  # noqa: ANN401
    """Wait for the end of a run; what comes meanwhile is answered, given up or told of."""
    news, seen = list[float](), {}

    async def told(done: float, _total: float | None, _words: str | None) -> None:
        news.append(done)

    async def waits() -> None:
        wish = {"run": run, "seconds": LONG}
        answer = await client.call_tool("wait", wish, progress_callback=told)
        seen["waited"] = answer.model_dump(by_alias=True)["structuredContent"]

    async with anyio.create_task_group() as both:
        both.start_soon(waits)
        with anyio.move_on_after(0.3) as given_up:
            await called(client, "wait", run=run, seconds=LONG)
        seen["given_up"] = given_up.cancelled_caught
        seen["status"] = await called(client, "status", run=run)
        while not news:
            await anyio.sleep(0.05)
        seen["first"] = "waited" not in seen
        await anyio.Path(go).touch()
    return seen


async def main(mode: str, command: list[str], directory: str, environ: dict[str, str]) -> None:
    words = [*command[1:], "mcp", "--root", directory]
    server = StdioServerParameters(command=command[0], args=words, env=environ)
    async with connected(mode, server) as (client, version):
        tools = (await client.list_tools()).tools
        begun = await called(client, "start", prompt="Do it", max_iterations=3)
        seen = await while_it_waits(client, begun["data"]["run"], f"{directory}/go")
        log = await called(client, "log", since="0.0")
        report = await called(client, "report")
        wrong = await called(client, "start", prompt="x", directory="/")
        try:
            unknown = str(await called(client, "dance"))
        except Exception as error:  # noqa: BLE001  each SDK has its own
            unknown = str(error)
    seen |= {"version": version, "tools": [tool.name for tool in tools], "begun": begun}
    print(json.dumps({**seen, "log": log, "report": report, "wrong": wrong, "unknown": unknown}))


anyio.run(main, sys.argv[1], *map(json.loads, sys.argv[2:]))
