"""A run as one HTML page: scores, curves, samples over time, what the model looks at, the data, the settings and where it was made."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mt.clean.tally import Tally
from mt.config.load import dump, load
from mt.config.schema import Config
from mt.errors import RunError
from mt.files import write_atomic
from mt.formats.pairs import counted
from mt.page.blocks import Tile, card, facts, figure, folded, grid, heat, listing, section, table, texts, tiles
from mt.page.charts import Bars, bar_chart
from mt.page.document import document
from mt.page.elements import Html, joined, tag
from mt.report.curves import curves
from mt.report.environment import recorded
from mt.report.history import History, numbers
from mt.report.insight import Insight, look_inside
from mt.report.settings import changed, written
from mt.report.standing import State, duration, state_of
from mt.rundir import RunDir

METRICS = {"bleu": "BLEU", "chrf": "chrF", "loss": "loss"}
TIMES = 6  # validations of which a sample's translation is shown
SAMPLES = 5
TESTS = 3  # whose score is a tile


def write_report(run: RunDir, output: Path | None = None, *, device: str) -> Path:
    """Write the page, to `reports/index.html` unless elsewhere, and say where. Raises MTError for what is no run."""
    path = output or run.page
    page = run_page(run, device=device, home=path.parent)
    if output is None:
        try:
            run.reports.mkdir(exist_ok=True)
        except OSError as error:
            raise RunError(f"{run.reports}: cannot be made ({(error.strerror or str(error)).lower()}); give --output FILE") from None
    with write_atomic(path) as file:
        file.write(page)
    return path


def run_page(run: RunDir, *, device: str, home: Path | None = None) -> str:
    """The whole page; `home` is the folder that it will lie in, `reports/` unless given."""
    run.require()
    config = load(run.config).config
    history, tests, starts = History.of(run), _read(run.test_scores), recorded(run)
    state = state_of(run, history)
    inside = look_inside(run, config, history, tests, device=device)
    parts = [
        _tiles(history, tests, starts, state),
        *_scores(history, tests, config),
        section("Learning curves", grid(*curves(history)), name="curves") if history.rows or history.validations else "",
        *_lengths(inside),
        *_samples(history),
        *_attention(inside),
        *_data(run),
        *_checkpoints(run, history, home or run.reports),
        *_settings(config),
        *_environment(starts),
    ]
    return document(*parts, title=run.path.absolute().name, about=_about(config, history, state))


def _read(file: Path) -> dict[str, Any]:
    """An object of a run, empty where there is none or it is damaged."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _about(config: Config, history: History, state: State) -> str:
    langs = f"{config.langs.src} → {config.langs.tgt}" if config.langs else ""
    parts = (langs, state.told, counted(history.update, "update"), duration(history.seconds))
    return " · ".join(part for part in parts if part)


def _tiles(history: History, tests: dict[str, Any], starts: Sequence[dict[str, Any]], state: State) -> Html:
    found = []
    for name, one in list(tests.items())[:TESTS]:
        for told in _metrics(one)[:1]:
            found.append(Tile(f"{told['score']:.2f}", f"{told['name']} on {name}", _interval(told)))
    if best := history.best or (history.validations[-1] if history.validations else None):
        for metric in ("bleu", "loss"):
            if metric in best["scores"]:
                found.append(Tile(_score(metric, best["scores"][metric]), f"{METRICS[metric]} on dev", f"at update {best['update']}"))
    found.append(Tile(str(history.update), "updates", f"{history.skipped} skipped" if history.skipped else ""))
    found.append(Tile(duration(history.seconds), "of training", state.told, "warning" if state.name in ("killed", "failed") else ""))
    if starts and (parameters := starts[-1].get("parameters")):
        found.append(Tile(_short(parameters), "parameters", str(starts[-1].get("device", ""))))
    return tiles(found)


def _short(count: Any) -> str:
    return f"{count / 1e6:.1f} M" if isinstance(count, int) and count >= 1e5 else str(count)


def _score(metric: str, value: float) -> str:
    return f"{value:.{3 if metric == 'loss' else 2}f}"


def _metrics(test: Any) -> list[dict[str, Any]]:
    """The scores of a test set that can be shown."""
    told = test.get("metrics") if isinstance(test, dict) else None
    return [one for one in told or [] if isinstance(one, dict) and isinstance(one.get("score"), int | float) and "name" in one]


def _interval(metric: dict[str, Any]) -> str:
    match metric.get("interval"):
        case [int() | float() as low, int() | float() as high]:
            return f"[{low:.2f}, {high:.2f}]"
    return ""


def _scores(history: History, tests: dict[str, Any], config: Config) -> Iterator[Html]:
    """Final scores, of test sets and of the best checkpoint on dev, with what they were computed by."""
    rows = [
        [
            name,
            metric["name"],
            f"{metric['score']:.2f}",
            _interval(metric),
            str(one.get("beam", "")),
            tag("code", str(metric.get("signature", ""))),
        ]
        for name, one in tests.items()
        for metric in _metrics(one)
    ]
    rows += _dev_rows(history.best) if history.best else []
    if not rows:
        why = "Nothing was validated yet." if config.data.dev_sets() or config.data.test else "This run has neither dev nor test sets."
        yield section("Scores", tag("p", why, class_="dim"), name="scores")
        return
    about = "Raw, detokenised text through sacreBLEU; intervals are 95 %, by bootstrap."
    yield section(
        "Scores", table(["set", "metric", "score", "interval", "beam", "signature"], rows, text=(0, 1, 5)), about=about, name="scores"
    )


def _dev_rows(best: dict[str, Any]) -> Iterator[list[str]]:
    """The best validation; where there are several dev sets, their scores under their names."""
    for told, signature in (best.get("signatures") or {}).items():
        name, _, metric = told.rpartition(" ")
        scores = numbers((best.get("sets") or {}).get(name, {})) if name else best["scores"]
        if metric in scores:
            beam = str(best.get("beam", ""))
            yield [f"dev {name}".strip(), METRICS.get(metric, metric), f"{scores[metric]:.2f}", "", beam, tag("code", str(signature))]


def _lengths(inside: Insight) -> Iterator[Html]:
    charts = []
    for name, groups in inside.lengths.items():
        labels = [f"{one['from']}–{one['to']}" if one["from"] != one["to"] else str(one["from"]) for one in groups]
        bars = []
        for place, told in enumerate(_metrics(groups[0]) if groups else []):
            each = [_metrics(one)[place] for one in groups]
            spans = [(one["interval"][0], one["interval"][1]) for one in each] if all(map(_interval, each)) else None
            bars.append(Bars(told["name"], [one["score"] for one in each], spans))
        lines = ", ".join(str(one["lines"]) for one in groups)
        charts.append(figure(bar_chart(labels, bars, title=name, x="pieces of the source"), f"Lines in each group: {lines}."))
    if charts:
        yield section("Short and long sentences", grid(*charts), about="Scores of sentences by the length of their source.", name="lengths")


def _samples(history: History) -> Iterator[Html]:
    """Some dev sentences, and how their translation became what it is."""
    told = [event for event in history.validations if isinstance(event.get("samples"), list) and event["samples"]]
    if not told:
        return
    chosen = sorted({round(place * (len(told) - 1) / max(TIMES - 1, 1)) for place in range(TIMES)})
    cards = []
    for number, sample in enumerate(told[-1]["samples"][:SAMPLES]):
        source, reference = (str(sample.get(name, "")) for name in ("source", "reference"))
        over_time: list[tuple[str, str]] = []
        for event in (told[place] for place in chosen):
            same = number < len(event["samples"]) and event["samples"][number].get("source") == sample.get("source")
            text = str(event["samples"][number].get("translation", "")) if same else ""
            if same and not (over_time and over_time[-1][1] == text):  # shown again only where it changed
                over_time.append((f"update {event['update']}", text))
        cards.append(card(texts(("source", source), ("reference", reference)), texts(*over_time)))
    yield section(
        "Samples over time",
        *cards,
        about="Dev sentences and their translation at some of the validations, where it changed.",
        name="samples",
    )


def _attention(inside: Insight) -> Iterator[Html]:
    maps = [
        figure(
            joined(
                (
                    texts(("source", one.source_text), ("translation", one.target_text)),
                    heat(one.target, one.source, one.shares, about="how much each piece of the translation looks at each of the source"),
                )
            )
        )
        for one in inside.attentions
    ]
    problems = [tag("p", problem, class_="dim") for problem in inside.problems]
    about = (
        "How much each piece of a translation, a row, looks at each of its source: the last decoder layer but one, the mean of its heads."
    )
    if maps or problems:
        yield section("Attention", *problems, grid(*maps), about=about if maps else "", name="attention")


def _data(run: RunDir) -> Iterator[Html]:
    """Pairs of each corpus that were kept, and those dropped by reason; the sum comes last where there are several."""
    try:
        tallies = {name: Tally.from_json(told) for name, told in _read(run.filtered)["corpora"].items()}
    except (KeyError, TypeError, AttributeError):
        return
    if len(tallies) > 1:
        tallies["all"] = sum(tallies.values(), Tally())
    rows = []
    for name, tally in tallies.items():
        counts = {"kept": tally.kept, **dict(tally.dropped.most_common())}
        rows += [
            ["" if place else name, why, str(count), f"{count / max(tally.total, 1):.2%}"]
            for place, (why, count) in enumerate(counts.items())
        ]
    if rows:
        yield section("Data", table(["corpus", "pairs", "count", "share"], rows, text=(0, 1)), name="data")


def _checkpoints(run: RunDir, history: History, home: Path) -> Iterator[Html]:
    scores = {event["update"]: event["scores"] for event in history.validations}
    try:
        names = run.names()
    except RunError:
        names = {}
    rows = []
    for path in [*map(run.step, run.steps()), *([run.average] if run.average.is_dir() else [])]:
        own = (
            scores.get(int(path.name[5:]), {}) if path.name.startswith("step-") else numbers(_read(path / "state.json").get("scores") or {})
        )
        called = ", ".join(name for name, folder in names.items() if folder == path.name)
        link = tag("a", path.name, href=f"{quote(os.path.relpath(path, home))}/")
        rows.append([link, called, *(_score(metric, own[metric]) if metric in own else "" for metric in METRICS)])
    if rows:
        yield section("Checkpoints", table(["folder", "name", *METRICS.values()], rows, text=(0, 1)), name="checkpoints")


def _settings(config: Config) -> Iterator[Html]:
    rows = [[tag("code", name), written(value), written(usual) or "–"] for name, value, usual in changed(config)]
    different = table(["setting", "here", "by default"], rows, text=(0, 1, 2)) if rows else tag("p", "All are the defaults.", class_="dim")
    about = "What is not as it is by default; what was derived from the corpus is among it."
    yield section("Settings", different, folded("The whole config", listing(dump(config))), about=about, name="settings")


def _environment(starts: Sequence[dict[str, Any]]) -> Iterator[Html]:
    if not starts:
        return
    newest = [(name.replace("_", " "), written(value)) for name, value in starts[-1].items() if value not in (None, "")]
    before = [[str(one.get("time", "")), str(one.get("update", "")), str(one.get("device", ""))] for one in starts]
    more = [table(["started", "at update", "on"], before, text=(0, 2))] if len(starts) > 1 else []
    yield section("Environment", facts(newest), *more, name="environment")
