"""The documentation's site: no warnings, no dead links, and every page as it should be in a browser."""

import importlib.util
import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parent.parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; one that PYDTCONV_SITE names is taken as it is."""
    if os.environ.get("PYDTCONV_SITE"):
        return Path(os.environ["PYDTCONV_SITE"])
    for module in ("sphinx", "pydata_sphinx_theme", "myst_parser", "sphinx_copybutton"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}: pip install 'pydtconv[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "-b", "html", "docs", str(folder)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return folder


class Page(HTMLParser):
    """Links, names and pictures of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names, self.pictures = [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.names.update(filter(None, (values.get("id"), values.get("name"))))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "img":
            self.pictures.append(values)


def test_no_link_is_dead(site):
    pages = {path: Page(path) for path in site.glob("**/*.html")}
    assert len(pages) > 30
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages.get(target)
            if not target.exists() or (parts.fragment and known and unquote(parts.fragment) not in known.names):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead


def test_pictures_are_there_and_have_a_text(site):
    for path in site.glob("**/*.html"):
        for picture in Page(path).pictures:
            assert picture.get("alt"), (path, picture)
            assert (path.parent / unquote(picture["src"])).exists(), (path, picture)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (extra browser) and a Chromium")
    if CHROMIUM is None:
        pytest.skip("needs a Chromium")
    with playwright.sync_playwright() as play:
        started = play.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"],
        )
        yield started
        started.close()


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_a_browser_shows_no_overflow_and_readable_colours(site, browser, width, colours):
    """No page is wider than the window; text and ground differ by a contrast of 4.5 (WCAG 2 AA)."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=colours)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    folder = os.environ.get("PYDTCONV_SCREENSHOTS")
    for path in sorted(site.glob("**/*.html")):
        if "_static" in path.parts or path.stem in ("genindex", "py-modindex", "search"):
            continue
        page.goto(path.as_uri())
        if folder:
            name = "-".join(path.relative_to(site).with_suffix("").parts)
            page.screenshot(path=f"{folder}/{name}-{colours}-{width}.png")
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{path.name} is {wide} px too wide"
        broken = page.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
        assert not broken, broken
        assert page.evaluate(CONTRAST) >= 4.5, path.name
    assert not errors
    page.close()


#: contrast of the article's text with its ground
CONTRAST = """() => {
  const parse = c => c.match(/[\\d.]+/g).slice(0, 3).map(Number).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = c => { const [r, g, b] = parse(c); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const text = getComputedStyle(document.querySelector('article') || document.body).color;
  const ground = getComputedStyle(document.body).backgroundColor;
  const [a, b] = [light(text), light(ground)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""
