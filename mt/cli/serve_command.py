"""`mt serve`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mt.cli.model_options import Checkpoint, Device, Precision, WhichWeights
from mt.cli.models import How, Models, Shares, load_models
from mt.cli.remarks import warn
from mt.errors import MTError
from mt.extras import install
from mt.rundir import ExportDir, RunDir

if TYPE_CHECKING:
    from socket import socket

    from mt.serve.access_log import LogFormat
    from mt.serve.limits import Limits
    from mt.translator import Translator


def serve(
    context: typer.Context,
    model: Models,
    host: Annotated[str, typer.Option(metavar="NAME", help="Address to listen at; 0.0.0.0 is every one of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen at; 0: any that is free.")] = 8000,
    checkpoint: Checkpoint = "best",
    weights: WhichWeights = None,
    precision: Precision = None,
    device: Device = "auto",
    ensemble: How = None,
    ensemble_weights: Shares = None,
    batch_wait: Annotated[float, typer.Option(min=0, metavar="MS", help="Milliseconds that a sentence waits for others.")] = 5.0,
    max_batch: Annotated[int, typer.Option(min=1, metavar="N", help="Sentences that are translated at a time.")] = 64,
    max_queue: Annotated[int, typer.Option(min=1, metavar="N", help="Requests that are translated or wait; more are refused.")] = 256,
    max_per_client: Annotated[int, typer.Option(min=0, metavar="N", help="Requests of one address at a time; 0: any number.")] = 0,
    max_characters: Annotated[int, typer.Option(min=1, metavar="N", help="Characters of a request.")] = 20_000,
    max_file_bytes: Annotated[int, typer.Option(min=1, metavar="N", help="Bytes of a file.")] = 2 * 2**20,
    max_beam: Annotated[int, typer.Option(min=1, metavar="N", help="Widest beam, and most translations of a text.")] = 20,
    timeout: Annotated[float, typer.Option(metavar="S", help="Seconds for a request, its wait included.")] = 60.0,
    body_timeout: Annotated[float, typer.Option(metavar="S", help="Seconds for a request to arrive.")] = 20.0,
    drain: Annotated[float, typer.Option(min=0, metavar="S", help="Seconds for what is begun, once asked to end.")] = 30.0,
    api_key_file: Annotated[
        Path | None, typer.Option(readable=False, metavar="FILE", help="Keys, one a line, of which clients have to show one.")
    ] = None,
    cors: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Web site whose pages may ask, such as https://example.org; can be repeated.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Name by which the server may be called, besides localhost; can be repeated.")
    ] = None,
    log_format: Annotated[Literal["text", "json"], typer.Option(help="A line a request on stderr; never its text.")] = "text",
) -> None:
    """Answer requests over HTTP: a page at /, JSON at /v1/translate, and what clients of LibreTranslate ask for.

    Requests that come together are translated together. SIGTERM and Ctrl-C end the server once what is begun is done (exit code 0).

    Examples:

    mt serve --model runs/demo

    curl localhost:8000/v1/translate -H 'content-type: application/json' -d '{"text": "Good morning."}'
    """
    if context.args:
        raise MTError(f"{context.args[0]}: a run goes behind its option: --model {context.args[0]}")
    refuse_missing()
    from mt.serve.admission import KEY_VARIABLE, hosts_in, keys_in, origins_in
    from mt.serve.guard import is_loopback
    from mt.serve.limits import Limits
    from mt.serve.server import listen

    limits = Limits(
        characters=max_characters,
        file_bytes=max_file_bytes,
        queue=max_queue,
        per_client=max_per_client,
        seconds=timeout,
        body_seconds=body_timeout,
        drain_seconds=drain,
        beam=max_beam,
        batch=max_batch,
        batch_seconds=batch_wait / 1000,
    )
    keys, origins = keys_in(api_key_file, os.environ.get(KEY_VARIABLE)), origins_in(cors or ())
    # Without names nobody knows by which a server for others is called; one for this machine has no others.
    hosts = hosts_in(allowed_host or ()) if is_loopback(host) or allowed_host else None
    with listen(host, port) as listening:  # an address that is taken is told before the model is loaded
        for one in model:
            if not ExportDir(one).is_there():
                RunDir(one).require()
        name = " + ".join(map(str, model))
        if not sys.stderr.isatty():  # a terminal is told by what loads it
            print(f"loading {name} …", file=sys.stderr, flush=True)
        translator = load_models(
            model, how=ensemble, shares=ensemble_weights, checkpoint=checkpoint, device=device, precision=precision, weights=weights
        )
        address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
        if not keys and hosts is None:
            warn("anybody who reaches this address may ask; see --api-key-file")
        who = {"keys": keys, "hosts": hosts, "origins": origins}
        code = _run(translator, name, listening, limits, log_format=log_format, address=address, who=who)
    if code:
        sys.exit(code)


def _run(
    translator: Translator, name: str, listening: socket, limits: Limits, *, log_format: LogFormat, address: str, who: dict[str, Any]
) -> int:
    """Answer until asked to end; `who` is what `application` is told of who may ask. The exit code."""
    from mt.serve.access_log import log, write_log
    from mt.serve.answering import Model
    from mt.serve.api import application
    from mt.serve.guard import State
    from mt.serve.server import serve as answer

    write_log(log_format)
    served = Model(translator, name)
    served.warm()
    state = State()
    app = application(served, limits, state=state, **who)

    def ready() -> None:
        print(f"serving {name} at {address}; Ctrl-C ends", file=sys.stderr, flush=True)

    code = answer(app, listening, state=state, limits=limits, ready=ready)
    log.info("ended; %s", "some requests were not answered" if code else "all requests are answered")
    return code


def refuse_missing() -> None:
    """Raise MTError, in one line, without the libraries of the extra."""
    from importlib.util import find_spec

    for library in "fastapi", "uvicorn", "prometheus_client", "sentencex":
        if find_spec(library) is None:
            raise MTError(f"mt serve needs an extra: {install('serve')}")
