"""The documentation as a site: it is built strictly, every link and anchor holds, nothing asks another machine for anything."""

from __future__ import annotations

import importlib.util
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
import typer

from mt.cli.app import app
from mt.config.names import settings
from tests.delivery.pages import PAGES, ROOT

pytest.importorskip("material", reason="the extra `docs` is not installed")


class Found(HTMLParser):
    """What a page fetches by itself, where it leads, and what in it can be led to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of it."""
        given = {key: value or "" for key, value in attrs}
        self.ids |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in ("link", "use", "image") and given.get("rel") != "canonical":
            self.fetched.append(given.get("href", given.get("xlink:href", "")))
        elif tag in ("script", "img", "iframe", "source", "video", "audio", "embed", "object"):
            self.fetched += [given[key] for key in ("src", "srcset", "data") if given.get(key)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `mkdocs build --strict` builds it: a warning is an error."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    return folder


@pytest.fixture(scope="module")
def found(site: Path) -> dict[str, Found]:
    return {str(path.relative_to(site)): Found(path) for path in sorted(site.rglob("*.html"))}


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_pages", ROOT / "scripts" / "docs_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_built_and_in_the_navigation(found: dict[str, Found]) -> None:
    pages = {path.with_suffix(".html").name for path in PAGES if path.parent == ROOT / "docs"} | {
        "commands.html",
        "settings.html",
        "changelog.html",
    }
    assert pages <= found.keys()
    assert pages <= {link.partition("#")[0] for link in found["index.html"].links} | {"index.html"}


def test_nothing_is_fetched_from_elsewhere(site: Path, found: dict[str, Found]) -> None:
    assert [(page, what) for page, one in found.items() for what in one.fetched if re.match(r"(https?:)?//", what)] == []
    sheets = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert sheets
    assert [address for text in sheets for address in re.findall(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]*)", text)] == []
    svgs = [path.read_text(encoding="utf-8") for path in (site / "drawings").iterdir()]
    assert svgs
    assert [address for text in svgs for address in re.findall(r"(?:href|src)=\"([^\"#]+)", text)] == []


def test_every_link_within_the_site_leads_somewhere(found: dict[str, Found]) -> None:
    broken = []
    for page, one in found.items():
        for link in one.links:
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", target) or page == "404.html":
                continue
            target = target.rstrip("/") if target not in ("", ".") else ("index.html" if target else page)
            if target not in found or anchor and anchor not in found[target].ids and anchor != "__comments":
                broken.append((page, link))
    assert broken == []


def test_links_of_files_that_are_read_outside_the_site_lead_somewhere() -> None:
    """README, changelog and all pages as they lie in the repository: files exist, and headings are there as GitHub names them."""
    broken = []
    for page in [*PAGES, ROOT / "CHANGELOG.md"]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link) or target in ("commands.md", "settings.md", "changelog.md"):
                continue
            path = page.parent / target if target else page
            if not path.exists() or (anchor and anchor not in headings(path)):
                broken.append((page.name, link))
    assert broken == []


def headings(page: Path) -> set[str]:
    """Anchors of a Markdown file, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_command_has_an_entry_with_all_its_options(site: Path, found: dict[str, Found], hook: ModuleType) -> None:
    text = (site / "commands.html").read_text(encoding="utf-8")
    for words, command in hook.commands(typer.main.get_command(app)):
        assert "-".join(words) in found["commands.html"].ids
        own = text.partition(f'<h2 id="{"-".join(words)}">')[2].partition("<h2 ")[0]
        assert own
        options = [option for parameter in command.params if not getattr(parameter, "hidden", False) for option in parameter.opts]
        assert [option for option in options if option.startswith("--") and option not in own] == [], words


def test_every_setting_has_an_entry(found: dict[str, Found]) -> None:
    held_out = [("data", "dev"), ("data", "test")]  # corpora, as in data.train
    names = {".".join(map(str, trail)) for trail in settings() if len(trail) < 3 or trail[:2] not in held_out}
    assert len(names) > 100
    assert names <= found["settings.html"].ids


def test_the_words_of_a_setting_are_those_of_the_program(site: Path, hook: ModuleType) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "settings.html").read_text(encoding="utf-8")).replace("&lt;", "<").replace("&gt;", ">")
    plain = " ".join(text.replace("&amp;", "&").split())
    for name, _, words in hook.settings():
        assert " ".join(words.replace("`", "").split()) in plain, name


def test_a_broken_link_would_be_seen(tmp_path: Path) -> None:
    """Strictness itself: the same settings, one page with a link to nowhere."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A\n\n[b](#nowhere)\n", encoding="utf-8")
    config = load_config(
        str(ROOT / "mkdocs.yml"),
        docs_dir=str(tmp_path / "docs"),
        site_dir=str(tmp_path / "site"),
        hooks=[],
        nav=["index.md"],
        theme={"name": "mkdocs"},
        strict=True,
    )
    with pytest.raises(Abort):
        build(config)
