"""What a run leaves for its reader: its page, where it was made, and pictures for TensorBoard."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import mt as package
from mt.focus import attention_of
from mt.launch import ending
from mt.rundir import RunDir
from mt.train.board import picture
from mt.translator import Translator
from tests import toy
from tests.page.reading import Tags
from tests.runs import Done, Silent, final_test, four_updates, mt, train

PICTURES = "train.report=true", "train.validation={every: 2, samples: 2, attention: 2}"
pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDir, Done]:
    """A finished run with its page; its corpus has 漢字, العربية and markup in it."""
    folder = tmp_path_factory.mktemp("reported")
    toy.write_corpus(folder, train=40, dev=4, test=9)
    for side in ("src", "trg"):
        for part in ("train", "valid"):
            path = folder / f"{part}.{side}"
            path.write_text("<script>alert(1)</script> 漢字 العربية\n" + path.read_text("utf-8").partition("\n")[2], encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt.launch.run.Console", lambda **_: Silent())
        done = train(four_updates(folder, final_test(folder), "tokenizer.vocab_size=200", *PICTURES))
    return RunDir(folder / "run"), done


def test_the_page_is_written_at_the_end(reported: tuple[RunDir, Done]) -> None:
    run, done = reported
    assert done.code == 0
    assert done.says(f"report: {run.page}")
    assert done.says("on the dev set after 4 updates: it has hardly begun to learn; to train longer: --resume --set train.max_updates=…")
    tags = Tags(run.page.read_text("utf-8"))
    assert "script" not in tags.seen
    for told in (
        "finished: the limit of 4 updates",
        "<script>alert(1)</script> 漢字 العربية",
        "BLEU on final",
        "Short and long sentences",
        "torch",
    ):
        assert told in tags.text
    links = [link for link in tags.links if link.startswith("../")]
    assert links == ["../checkpoints/step-00000002/", "../checkpoints/step-00000004/"]
    assert all((run.reports / link).is_dir() for link in links)
    assert json.loads(run.test_scores.read_text("utf-8"))["final"]["by_length"][0]["lines"] == 9


def test_the_command_links_from_where_its_page_lies(
    reported: tuple[RunDir, Done], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, _ = reported
    done = mt("report", run.path, "--output", tmp_path / "x.html", "--device", "cpu", capsys=capsys)
    assert (done.code, done.lines) == (0, [f"report: {tmp_path / 'x.html'}"])
    page, there = (tmp_path / "x.html").read_text("utf-8"), os.path.relpath(run.checkpoints, tmp_path)
    assert page.replace(f'href="{there}', 'href="../checkpoints') == run.page.read_text("utf-8")
    assert f'href="{there}/step-00000002/"' in page
    assert mt("report", tmp_path, capsys=capsys).code == 2
    assert mt("report", run.path, "--output", tmp_path, capsys=capsys).code == 2
    assert mt("report", run.path, run.path, capsys=capsys).code == 2
    config = run.config.read_bytes()
    (tmp_path / "link").symlink_to(run.config)
    for own in (run.config, tmp_path / "link"):
        assert mt("report", run.path, "--output", own, capsys=capsys).code == 2
    assert run.config.read_bytes() == config


def test_a_page_that_cannot_be_written_is_a_warning(folder: Path) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("no colours left")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ending, "write_report", fail)
        done = train(four_updates(folder, "data.dev=none", "train.report=true"))
    assert done.code == 0
    assert done.says("index.html: could not be written (no colours left); see `mt report ")
    again = train(four_updates(folder, "data.dev=none", "train.report=true"), resume=True)  # of a finished run: what is missing is made
    assert again.says(f"report: {folder / 'run' / 'reports' / 'index.html'}")


def test_each_start_is_noted(reported: tuple[RunDir, Done], folder: Path) -> None:
    (line,) = reported[0].starts.read_text("utf-8").splitlines()
    told = json.loads(line)
    assert (told["update"], told["mt"], told["torch"].split("+")[0]) == (0, package.__version__, torch.__version__.split("+")[0])
    assert told["parameters"] == sum(p.numel() for p in Translator.load(reported[0].path, device="cpu").model.parameters())
    train(four_updates(folder, "data.dev=none", "train.max_updates=2"))
    train(four_updates(folder, "data.dev=none"), resume=True)
    assert [json.loads(line)["update"] for line in RunDir(folder / "run").starts.read_text("utf-8").splitlines()] == [0, 2]


def test_tensorboard_has_settings_and_pictures(reported: tuple[RunDir, Done]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    run, _ = reported
    board = EventAccumulator(str(run.tensorboard))
    board.Reload()
    assert {tag: len(board.Images(tag)) for tag in board.Tags()["images"]} == {"dev/attention 1": 2, "dev/attention 2": 2}
    assert {"config/text_summary", "dev/sample 1/text_summary"} <= set(board.Tags()["tensors"])
    contents = board.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    values = HParamsPluginData.FromString(contents).session_start_info.hparams
    assert (values["model.dim"].number_value, values["train.precision"].string_value) == (16, "fp32")
    assert all("attention" not in json.loads(line) for line in run.journal.read_text("utf-8").splitlines())


def test_attention_is_a_share_for_each_piece(reported: tuple[RunDir, Done]) -> None:
    translator = Translator.load(reported[0].path, device="cpu")
    lines = ["bage .", "", "漢字 العربية"]
    found = attention_of(translator, translator.translate(lines, beam=1))
    assert [one.source_text for one in found] == [line for line in lines if line]
    for one in found:
        shares = np.array(one.shares)
        assert shares.shape == (len(one.target), len(one.source))
        assert (shares >= 0).all()
        assert (shares.sum(axis=1) <= 1 + 1e-6).all()  # the rest goes to the end of the source
    pixels = picture(found[1])
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3
    assert len(np.unique(pixels)) > 2
