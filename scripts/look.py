"""Look at pages as a reader sees them: in a headless Chromium, light and dark, on a desk and on a phone.

    python scripts/look.py PAGE.html... [--output FOLDER]
    python scripts/look.py http://localhost:8000/ --type "A text to translate."

Writes a screenshot of each, and says what a reader would stumble over: messages on the console, requests for anything but the page (a
served one may ask its own server), a page wider than its window, type under 9 pixels, text of too little contrast. With `--type` something
is typed into its first text field, and looked at a second later. Exit code 1 if there is any of it. Needs Chromium, and Playwright (the
extra `dev` has it); nothing is downloaded.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

WIDTHS = {"desk": 1280, "phone": 390}
SCHEMES = "light", "dark"
BROWSERS = "chromium", "chromium-browser", "google-chrome"
SMALLEST = 9.0  # pixels
CONTRAST = 4.5  # WCAG AA
ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

MEASURES = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const colour = css => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = css;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = ([...rgb]) => rgb.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const paper = element => {
    for (let e = element; e; e = e.parentElement) {
      const found = colour(getComputedStyle(e).backgroundColor);
      if (found[3] > 250) return found;
    }
    return [255, 255, 255];
  };
  const found = [], seen = new Set();
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = texts.nextNode();) {
    const text = node.textContent.trim(), element = node.parentElement, svg = element.closest("svg");
    if (!text || ["title", "desc"].includes(element.tagName) || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize) * (svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1);
    if (!svg && colour(style.color)[3] === 0) continue;  // there for its room only
    const [one, other] = [light(colour(svg ? style.fill : style.color)), light(paper(element))].sort((a, b) => b - a);
    const ratio = (one + .05) / (other + .05);
    const wrong = [size < SMALLEST && `type of ${size.toFixed(1)} pixels`, ratio < CONTRAST && `contrast ${ratio.toFixed(1)}`];
    for (const what of wrong.filter(Boolean)) {
      if (!seen.has(what)) found.push(`${what}: ${text.slice(0, 40)}`);
      seen.add(what);
    }
  }
  return found;
}
""".replace("SMALLEST", str(SMALLEST)).replace("CONTRAST", str(CONTRAST))


def address(page: str) -> str:
    """Of a served page, or a file."""
    return page if page.startswith(("http://", "https://")) else Path(page).absolute().as_uri()


def stem(page: str) -> str:
    """What its screenshots are named after."""
    return Path(urlsplit(address(page)).path).stem or "served"


def is_own(url: str, page: str) -> bool:
    """Whether a page may ask for this: itself, what is written in it, and its own server if it has one."""
    own = urlsplit(address(page))
    return url == address(page) or url.startswith("data:") or (own.scheme != "file" and urlsplit(url)[:2] == own[:2])


def look(browser: Any, page: str, *, output: Path, typed: str | None) -> list[str]:
    """Screenshots of a page, and what is wrong with it."""
    problems = []
    for scheme in SCHEMES:
        for name, width in WIDTHS.items():
            tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, device_scale_factor=1)
            asked: list[str] = []
            said: list[str] = []
            tab.on("request", lambda request, asked=asked: asked.append(request.url))
            tab.on("console", lambda message, said=said: said.append(message.text))
            tab.on("pageerror", lambda error, said=said: said.append(str(error)))
            tab.goto(address(page))
            if typed is not None:
                tab.locator("textarea").first.fill(typed)
                tab.wait_for_timeout(1000)
            tab.screenshot(path=output / f"{stem(page)}-{scheme}-{name}.png", full_page=True)
            tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            strangers = [url for url in asked if not is_own(url, page)]
            found = [*(f"console: {text}" for text in said), *(f"request: {url}" for url in strangers), *tab.evaluate(MEASURES)]
            problems += [f"{page} ({scheme}, {name}): {problem}" for problem in found]
            tab.close()
    return problems


def main() -> int:
    """Look at the pages that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="+", help="files, or addresses of served pages")
    parser.add_argument("--output", type=Path, default=Path(), help="folder for the screenshots")
    parser.add_argument("--type", dest="typed", help="text to type into the first text field")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit(f"none of {', '.join(BROWSERS)} is installed")
    options.output.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        problems = [problem for page in options.pages for problem in look(browser, page, output=options.output, typed=options.typed)]
        browser.close()
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
