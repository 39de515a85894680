"""/docs: what the routes take, as a plain page that asks for nothing else; made of the same description as /openapi.json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response

from mt.page.document import POLICY, document
from mt.page.elements import tag


def add(app: FastAPI) -> None:
    """Give an application the page."""

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        headers = {"content-security-policy": f"{POLICY}; frame-ancestors 'none'"}
        about = "Answers are JSON, refusals too, as error. The same for programs: /openapi.json"
        page = document(*_routes(app.openapi()), title=f"mt {app.version}", about=about)
        return HTMLResponse(page, headers=headers)


def _routes(openapi: dict[str, Any]) -> Iterator[str]:
    for path, methods in openapi["paths"].items():
        for method, route in methods.items():
            yield tag("h2", f"{method.upper()} {path}")
            yield tag("p", route.get("summary", ""))
            rows = [*_parameters(route), *_fields(route)]
            if rows:
                head = tag("tr", *(tag("th", name) for name in ("name", "kind", "default", "what it is")))
                yield tag("table", tag("thead", head), tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows)))


def _parameters(route: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for one in route.get("parameters", ()):
        schema = one["schema"]
        yield f"?{one['name']}=", _kind(schema), str(schema.get("default", "")), one.get("description", "")


def _fields(route: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    content = route.get("requestBody", {}).get("content", {})
    for kind, media in list(content.items())[:1]:
        schema = media.get("schema")
        if schema is None:
            yield "body", kind, "", ""
            return
        for name, own in schema["properties"].items():
            needed = name in schema.get("required", ())
            yield name, _kind(own), "" if needed else str(own.get("default")), own.get("description", "")


def _kind(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"] if one.get("type") != "null")
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        inner = schema.get("items") or (schema["prefixItems"][0] if schema.get("prefixItems") else {})
        return f"list of {_kind(inner)}" if inner else "list"
    return str(schema.get("type", ""))
