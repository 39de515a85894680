"""The first pages that a newcomer reads are executed: every console block of README and tutorial, in order, in one folder each.

What is not as the reader runs it, so that it takes seconds: the files of `mt quickstart` are cut to their first lines once it has written
them, SHORTER is added to each `mt train`, and a tolerance to exports. `mt serve` runs beside what follows, at a port that is free. Blocks
of installing (bash) are not run here; the wheel has its own tests.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.delivery.pages import ROOT, blocks
from tests.translating import Ended, mt

SHORTER = (
    *("train.max_updates=12", "train.batch_tokens=400", "train.validation={every: 12, max_lines: 8, samples: 1, attention: 0}"),
    *("model.dim=32", "model.ffn=64", "model.encoder_layers=1", "model.decoder_layers=1", "decode.max_length_factor=0.5", "decode.beam=3"),
)
LINES = {"train": 300, "dev": 20, "test": 20}
ECHO = re.compile(r'echo "([^"]*)" \| (mt .*)')
QUICKSTART = ROOT / "data" / "quickstart"


def cut(folder: Path, names: dict[str, str], source: Path = QUICKSTART) -> None:
    """The first lines of the quickstart corpus under these names."""
    for name, origin in names.items():
        lines = (source / origin).read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / name).write_text("".join(lines[: LINES[origin.partition(".")[0]]]), encoding="utf-8", newline="\n")


class Served:
    """`mt serve` of a page, beside the commands after it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.address = ""

    def start(self, words: list[str]) -> tuple[int, list[str]]:
        """As a page starts it, but at any port; 0 and its first line once it answers."""
        command = [sys.executable, "-m", *words, "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8", env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert self.process.stderr is not None
        line = next((line for line in self.process.stderr if line.startswith("serving ")), "")
        self.address = line.partition(" at http://")[2].partition(";")[0]
        return (0 if self.address else 1), [line]

    def end(self) -> int:
        """Ctrl-C; the exit code, 0 if there is none to end."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGINT)
        _, _ = self.process.communicate(timeout=60)
        return self.process.returncode


SERVED = Served()


def run(command: str) -> tuple[int, list[str]]:
    """A line of a console; its exit code, and the lines it prints on both streams."""
    piped = ECHO.fullmatch(command)
    words = shlex.split(piped[2] if piped else command)
    if words[:2] == ["mt", "export"]:
        words += ["--tolerance", "100"]  # what has learnt nothing says other things for the least rounding
    if words[:2] == ["mt", "serve"]:
        return SERVED.start(words)
    if words[0] != "mt" or {"|", ">", "<", "&"} & set(words):
        command = command.replace("localhost:8000", SERVED.address or "localhost:8000")
        done = subprocess.run(["bash", "-euc", command], capture_output=True, encoding="utf-8", env={**os.environ, "LC_ALL": "C.UTF-8"})
        return done.returncode, [*done.stdout.splitlines(), *done.stderr.splitlines()]
    if words[1] == "train":
        words += [word for setting in SHORTER for word in ("--set", setting)]
    ended: Ended = mt(*words[1:], stdin=f"{piped[1]}\n".encode() if piped else b"")
    if words[1] == "quickstart":
        cut(Path("quickstart"), {f"{name}.{side}": f"{name}.{side}" for name in LINES for side in ("en", "de")}, Path("quickstart"))
    return ended.code, [*ended.lines, *ended.err]


def shape(line: str) -> str:
    """A line without its numbers."""
    return re.sub(r"[-+]?\d[\d.,]*", "0", " ".join(line.split()))


def shown(text: str) -> list[tuple[str, list[str]]]:
    """Each command of a console block with the lines that stand below it, `…` being any."""
    found: list[tuple[str, list[str]]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif line.strip() and "…" not in line:
            found[-1][1].append(line)
    return found


def walk(page: Path) -> list[str]:
    """Run all console blocks of a page; the commands that were run. What is shown has to be printed, but for numbers."""
    done = []
    for block in blocks(page):
        if block.kind != "console":
            continue
        for command, below in shown(block.text):
            code, printed = run(command)
            assert code == 0, (page.name, command, printed)
            done.append(command)
            assert [line for line in below if shape(line) not in {shape(one) for one in printed}] == [], (command, printed)
    return done


def test_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cut(tmp_path, {"train.en": "train.en", "train.de": "train.de", "new.en": "dev.en", "news.en": "test.en", "news.de": "test.de"})
    commands = walk(ROOT / "README.md")
    assert [command.partition(" --")[0].rpartition("| ")[2] for command in commands] == [
        *("mt quickstart", "mt train", "mt translate", "mt init", "mt train", "mt translate", "mt eval"),
    ]
    assert len((tmp_path / "new.de").read_text(encoding="utf-8").splitlines()) == LINES["dev"]
    assert (tmp_path / "runs" / "en-de" / "reports" / "index.html").is_file()


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in ("ctranslate2", "transformers", "fastapi", "uvicorn"):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)
    try:
        commands = walk(ROOT / "docs" / "tutorial.md")
    finally:
        ended = SERVED.end()
    assert ended == 0
    assert {command.split()[1] for command in commands if command.startswith("mt ")} >= {
        *("quickstart", "data", "train", "translate", "eval", "compare", "runs", "report", "export", "serve"),
    }
    assert any(command.startswith("curl ") for command in commands)
    for name in ("test.out.de", "test.out.jsonl"):
        assert len((tmp_path / name).read_text(encoding="utf-8").splitlines()) == LINES["test"]


def test_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.translating import lively_run

    lively_run(tmp_path, "decode.max_length_factor=0.5")
    (tmp_path / "runs").mkdir()
    (tmp_path / "run").rename(tmp_path / "runs" / "my")
    monkeypatch.chdir(tmp_path)
    scopes = []
    for block in blocks(ROOT / "docs" / "python.md"):
        if block.kind == "python":
            scopes.append({"__name__": f"block_{block.line}"})
            exec(compile(block.text, f"python.md:{block.line}", "exec"), scopes[-1])
    assert len(scopes) >= 4
    assert "no-such-run" in capsys.readouterr().out


def test_a_line_that_is_not_printed_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```console\n$ mt --version\nmt 7.8.9.dev3\n```\n", encoding="utf-8")
    assert walk(page) == ["mt --version"]
    page.write_text("```console\n$ mt --version\nversion 9.9\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="version 9.9"):
        walk(page)
    page.write_text("```console\n$ mt runs nowhere\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="nowhere"):
        walk(page)
