"""What all routes have in common: notes on requests, work that ends where the client goes away, and how they are described."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel

from mt.serve.access_log import Note
from mt.serve.asked import gone_error
from mt.serve.guard import NOTED

Found = TypeVar("Found")


def note_of(request: Request) -> Note:
    """The note of a request, which the guard made."""
    note: Note = request.scope[NOTED]
    return note


async def unless_gone(request: Request, work: Awaitable[Found]) -> Found:
    """What the work gives; ended where the client goes away meanwhile: raises RefusedError (499)."""
    task = asyncio.ensure_future(work)

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    watch = asyncio.create_task(gone())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise gone_error()
    finally:
        for one in (task, watch):
            one.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await one


def body_schema(kind: type[BaseModel], *, form: bool = False) -> dict[str, Any]:
    """What the OpenAPI description of a route says of its body, which the route reads itself: JSON, or a `form` too."""
    schema = {"schema": kind.model_json_schema()}
    content = {"application/json": schema} | ({"application/x-www-form-urlencoded": schema} if form else {})
    return {"requestBody": {"required": True, "content": content}}


def query_schema(kind: type[BaseModel]) -> list[dict[str, Any]]:
    """What the OpenAPI description of a route says of its address, which the route reads itself."""
    properties = kind.model_json_schema()["properties"].items()
    return [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in properties]
