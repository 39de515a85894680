"""What requests ask for: their bodies, read and checked, with one line for what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NoReturn, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, Json, Strict, ValidationError
from starlette.requests import ClientDisconnect, Request

from mt.config.schema import MAX_LENGTH_PENALTY
from mt.serve.limits import CLIENT_GONE, MOST_TERMS, MOST_TEXTS, Limits, RefusedError
from mt.serve.sentences import without_surrogates

Asked = TypeVar("Asked", bound=BaseModel)

MOST_FIELDS = 2000
"""Of a form."""
MOST_ENTRIES = {"text": MOST_TEXTS, "q": MOST_TEXTS, "glossary": MOST_TERMS}
"""Of lists, by what they are called."""
FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data"

Terms = list[Annotated[tuple[str, str], Strict(False)]]  # noqa: FBT003 (JSON has no tuples)

KINDS = {str: "a text", bool: "true or false", int: "a number", float: "a number with a point", list: "a list", dict: "an object"}
"""What there is in JSON, for messages; what else there is is null."""


class Body(BaseModel):
    """Of a request; keys that it does not have are refused, and values of another kind, such as "3" for 3."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TranslateAsked(Body):
    """What POST /v1/translate takes."""

    text: str | list[str] = Field(description="One text or several, of any number of paragraphs and sentences.")
    target: str | None = Field(None, description="Target language, for a model that has several.")
    source: str | None = Field(None, description="Source language, whose rules cut the text into sentences. Left out: the model's.")
    n_best: int = Field(1, ge=1, description="Translations of each text, where it is one sentence.")
    beam: int | None = Field(None, ge=1, description="Beam width; 1 is greedy. Left out: the run's.")
    length_penalty: float | None = Field(None, ge=0, le=MAX_LENGTH_PENALTY, description="Larger favours longer translations.")
    format: Literal["text", "html"] = Field("text", description="html: tags are kept, the text between them is translated.")
    glossary: Terms | None = Field(None, max_length=MOST_TERMS, description="Terms, and how they are to be translated.")
    prefix: str | None = Field(None, description="How the translation begins, of a text of one sentence.")
    details: bool = Field(False, description="Sentences with pieces, probabilities and alignment.")


class AlternativesAsked(Body):
    """What POST /v1/alternatives takes."""

    text: str = Field(description="A sentence of the source.")
    prefix: str = Field("", description="The translation before the word in question.")
    n: int = Field(5, ge=1, description="How many.")
    target: str | None = Field(None, description="Target language, for a model that has several.")
    glossary: Terms | None = Field(None, max_length=MOST_TERMS, description="Terms, and how they are to be translated.")


class FileAsked(Body):
    """What the address of POST /v1/file says, after its question mark, where everything is text."""

    model_config = ConfigDict(strict=False)

    name: str = Field("text.txt", description="The file's name, whose suffix says its kind.")
    target: str | None = Field(None, description="Target language, for a model that has several.")
    beam: int | None = Field(None, ge=1, description="Beam width; 1 is greedy. Left out: the run's.")
    length_penalty: float | None = Field(None, ge=0, le=MAX_LENGTH_PENALTY, description="Larger favours longer translations.")
    glossary: Json[list[tuple[str, str]]] | None = Field(None, description="As in the other routes, a list of pairs, in JSON.")


class LibreAsked(BaseModel):
    """What LibreTranslate's POST /translate takes; keys that it does not have are ignored, and "3" is 3, as there."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    q: str | list[str] = Field(description="One text or several.")
    source: str = Field("auto", description="Source language, or auto.")
    target: str = Field(description="Target language.")
    format: Literal["text", "html"] = Field("text", description="html: tags are kept.")
    alternatives: int = Field(0, ge=0, description="So many more translations of each text.")
    api_key: str | None = Field(None, description="Where the server needs one.")


class DetectAsked(BaseModel):
    """What LibreTranslate's POST /detect takes."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    q: str = Field(description="A text.")
    api_key: str | None = Field(None, description="Where the server needs one.")


async def body_of(request: Request) -> bytes:
    """All of a request's body. Raises RefusedError where the client went away before it was there."""
    try:
        return await request.body()
    except ClientDisconnect:
        raise gone_error() from None


def gone_error() -> RefusedError:
    """Where nobody is left to be answered."""
    return RefusedError(CLIENT_GONE, "the client went away")


async def asked(request: Request, kind: type[Asked], *, form: bool = False) -> Asked:
    """The body of a request, checked. Raises RefusedError for one that is not JSON (400, 415) or does not have what is needed (422).

    Where a `form` is allowed, so are its fields. A page of another site can send no JSON without asking first, hence the 415.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await body_of(request)
    if form and given == FORM and not body.lstrip().startswith(b"{"):  # else it is JSON, sent by a curl that was not told so
        return checked(kind, fields(body))
    if form and given == PARTS:
        return checked(kind, parts(body, request.headers["content-type"]))
    if given and given != "application/json" and not given.endswith("+json"):
        raise RefusedError(415, f"content-type {given[:60]}: send application/json (curl -H 'content-type: application/json')")
    return checked(kind, parsed(body))


def parsed(body: bytes) -> Any:
    """JSON, all its texts such as UTF-8 can hold. Raises RefusedError (400) for what is none."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no number of JSON")

    try:
        return cleaned(json.loads(body.decode("utf-8-sig"), parse_constant=refuse))
    except UnicodeDecodeError as error:
        raise RefusedError(400, f"the body is not UTF-8 (byte {error.start}): send JSON in UTF-8") from None
    except RecursionError:
        raise RefusedError(400, "the body is nested too deeply: send flat JSON") from None
    except ValueError as error:
        reason = error.msg + f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else "a number in it cannot be read"
        raise RefusedError(400, f'the body is not JSON ({reason}): send an object such as {{"text": "Hello."}}') from None


def cleaned(value: Any) -> Any:
    """The same, without halves of surrogate pairs."""
    match value:
        case str():
            return without_surrogates(value)
        case list():
            return [cleaned(one) for one in value]
        case dict():
            return {without_surrogates(key): cleaned(one) for key, one in value.items()}
        case _:
            return value


def fields(body: bytes) -> dict[str, str | list[str]]:
    """The fields of a form, or of an address. Raises RefusedError (400) for what is none."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="replace")
    except ValueError:
        raise RefusedError(400, "the body is no form: send application/json") from None
    return by_name(pairs)


def by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
    """Names with their values; one that is there several times has a list."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in found.items()}


def parts(body: bytes, kind: str) -> dict[str, str | list[str]]:
    """The same of a form in parts, as browsers send it; files in it are left out. Raises RefusedError (400) for what is none."""
    boundary = re.search(r'boundary="?([^";]+)', kind)
    pairs: list[tuple[str, str]] = []
    for part in body.split(b"--" + boundary[1].strip().encode("latin-1"))[1:] if boundary else ():
        head, blank, value = part.partition(b"\r\n\r\n")
        name = re.search(rb'(?i)^content-disposition:.*?;\s*name="([^"]*)"', head, re.MULTILINE)
        if blank and name and b"filename" not in head:
            pairs.append((name[1].decode("utf-8", "replace"), value.removesuffix(b"\r\n").decode("utf-8", "replace")))
    if not pairs:
        raise RefusedError(400, "the body is no form in parts: send application/json")
    return by_name(pairs)


def checked(kind: type[Asked], value: Any) -> Asked:
    """What was asked for. Raises RefusedError (422, 413), in one line, for the first thing that is wrong with it.

    What there may be any number of is looked at first: entry by entry it would take a second, in which nobody else is answered.
    """
    known = kind.model_fields
    if not isinstance(value, dict):
        raise RefusedError(422, f'the body is no JSON object: send one such as {{"{next(iter(known))}": …}}')
    if kind.model_config["extra"] == "forbid" and (unknown := [key for key in value if key not in known]):
        raise RefusedError(422, f"{unknown[0][:60]!r}: unknown key; there are {', '.join(known)}")
    for name, most in MOST_ENTRIES.items():
        if isinstance(entries := value.get(name), list) and len(entries) > most:
            raise RefusedError(413, f"{name}: {len(entries)} entries: send {most} at a time at most")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise RefusedError(422, wrong(error, kind)) from None


def wrong(error: ValidationError, kind: type[BaseModel]) -> str:
    """The first problem, without the values, which may be text."""
    every = error.errors(include_url=False, include_context=False)
    about = [one for one in every if one["loc"][:1] == every[0]["loc"][:1]]
    first = max(about, key=lambda one: len(one["loc"]))  # of a text or a list of texts, what was tried and came furthest
    where = str(first["loc"][0]) if first["loc"] else "the body"
    entry = next((place + 1 for place in first["loc"][1:] if isinstance(place, int)), None)
    if first["type"] == "missing" and entry is None:
        return f"{where}: is missing; it is {kind.model_fields[where].description}"
    if where == "glossary":
        what = f"entry {entry} is no pair of texts" if entry else "is no list of pairs"
        return f'glossary: {what}; give one such as [["term", "translation"]]'
    problem = first["msg"][0].lower() + first["msg"][1:]
    other = f", not {KINDS.get(type(first['input']), 'null')}" if first["type"].endswith("_type") else ""
    return f"{where}: {f'entry {entry}: ' if entry else ''}{problem}{other}"


def refuse_too_much(texts: Sequence[str], limits: Limits) -> None:
    """Raise RefusedError (413) for more text than the server takes at a time."""
    characters = sum(map(len, texts))
    if characters > limits.characters:
        raise RefusedError(413, f"{characters} characters: send {limits.characters} at a time at most")
