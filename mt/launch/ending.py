"""What comes after the last update: the average, the scores of the test sets, the page of the run, and how to use it."""

from __future__ import annotations

import json
import shlex

from mt.checkpoint import read_state
from mt.config.directions import langs_of, tag_of, tags, target_of
from mt.data.meter import Say
from mt.evaluate.by_length import by_length
from mt.evaluate.metrics import FEW_BLEU, score
from mt.files import write_atomic
from mt.formats.pairs import counted
from mt.formats.readers import read_held_out
from mt.launch.combine import average_at_the_end
from mt.launch.derive import longer
from mt.launch.prepare import Prepared
from mt.report.insight import lengths_of
from mt.report.run_page import write_report
from mt.rundir import RunDir
from mt.train.monitor import naming
from mt.train.state import Progress
from mt.translator import Translator

METRICS = {"bleu": "BLEU", "chrf": "chrF", "loss": "loss"}


def is_scored(prepared: Prepared) -> bool:
    """Whether a finished run has all that comes after training."""
    config = prepared.config
    return prepared.run.test_scores.exists() or not (config.data.test or config.train.average.wanted)


def finish(prepared: Prepared, *, device: str, say: Say) -> None:
    """Average checkpoints if that was asked for, say which is the best, score the test sets, and say how to use the model."""
    config, run = prepared.config, prepared.run
    if config.train.average.wanted:
        average_at_the_end(prepared, say=say)
    checkpoint = "best" if "best" in run.names() else "last"  # no validation may have given a number, or none was made
    if checkpoint == "best":
        say(best_line(run, prepared.state.progress))
    reports = {}
    if config.data.test:
        say(f"scoring the test sets: {', '.join(config.data.test)}")
    translator = Translator.load(run.path, checkpoint, device=device) if config.data.test else None
    for name, corpus in config.data.test.items():
        assert translator is not None
        pairs = read_held_out(corpus, langs=langs_of(config, corpus))
        lines, lang = [pair.src for pair in pairs], target_of(config, corpus)
        found = translator.translate(lines, to=tag_of(config, corpus))
        translations, references = [one.text for one in found], [[pair.tgt for pair in pairs]]
        scores = score(translations, references, metrics=("bleu", "chrf"), lang=lang, intervals=True)
        groups = by_length(lengths_of(translator, lines), translations, references, lang=lang)
        reports[name] = {"corpus": corpus.called(), "beam": config.decode.beam, **scores.as_json(), "by_length": groups}
        for one in scores.metrics:
            say(f"{name}: {one.name} {one.score:.2f}  {one.signature}  beam {config.decode.beam}")
    if reports or config.train.average.wanted:
        with naming(run.reports):
            run.reports.mkdir(exist_ok=True)
        with write_atomic(run.test_scores) as file:
            json.dump(reports, file, indent=1, ensure_ascii=False)
    if config.train.report:
        report(prepared, device=device, say=say)
    if warning := hardly_begun(prepared):
        say(warning)
    which = "" if checkpoint == "best" else f" --checkpoint {checkpoint}"
    to = " --to LANG" if len(tags(config)) > 1 else ""
    say(f"translate with: mt translate --model {shlex.quote(str(run.path))}{which}{to} --input FILE")


def report(prepared: Prepared, *, device: str, say: Say) -> None:
    """Write the page of the run; a run that came to its end is none the worse without."""
    run = prepared.run
    say("writing the report")
    try:
        say(f"report: {write_report(run, device=device)}")
    except Exception as error:  # whatever it is
        say(f"warning: {run.page}: could not be written ({error}); see `mt report {shlex.quote(str(run.path))}`")


def hardly_begun(prepared: Prepared) -> str | None:
    """What to say of a model that is no good yet, as on a slow machine."""
    progress = prepared.state.progress
    if progress.metric != "bleu" or progress.best is None or progress.best >= FEW_BLEU or progress.ended is None:
        return None
    what = f"warning: BLEU {progress.best:.2f} on the dev set after {counted(progress.update, 'update')}: it has hardly begun to learn"
    return f"{what}; {longer(prepared.config, progress.ended, prepared.run)}"


def best_line(run: RunDir, progress: Progress) -> str:
    """Which checkpoint is the best, and by what."""
    path, metric = run.find("best"), progress.metric
    if metric is None:
        return f"best: {path}, the last one, as nothing was validated"
    score = read_state(path)["scores"][metric] if path == run.average else progress.best
    return f"best: {path}, {METRICS[metric]} {score:.{3 if metric == 'loss' else 2}f} on the dev set"
