"""The documentation's site: no warnings, no dead links, and every page as it should be in a browser."""

import importlib.util
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests import browser

ROOT = Path(__file__).parent.parent
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
            self.pictures.append({**values, "link": self.links[-1] if self.links else ""})


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
            # a phone shows a drawing in any size behind its link
            assert picture["link"] == picture["src"] or "_images/" not in picture["src"], (path, picture)


@pytest.fixture(scope="module")
def chromium():
    with browser.started() as chromium:
        yield chromium


@pytest.mark.parametrize("colours", browser.COLOURS)
def test_a_browser_shows_every_page_whole_and_readable(site, chromium, colours):
    """At each width no page is wider than the window and nothing is cut off; scripts run without errors, pictures load,
    nothing comes from outside, and every text differs from its ground by a contrast of 4.5 (WCAG 2 AA)."""
    folder = os.environ.get("PYDTCONV_SCREENSHOTS")
    faults = []
    with browser.served(site) as address:
        page = browser.watched(chromium, colours, address)
        for path in sorted(site.glob("**/*.html")):
            if "_static" in path.parts:
                continue
            where = path.relative_to(site)
            page.goto(f"{address}{where.as_posix()}")
            for width in browser.WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                faults += [f"{where}, {width} px: {fault}" for fault in page.evaluate(browser.LOOK)]
                if folder:
                    name = "-".join(where.with_suffix("").parts)
                    page.screenshot(path=f"{folder}/{name}-{colours}-{width}.png")
            faults += [f"{where}: {fault}" for fault in page.faults]
            page.faults.clear()
        page.close()
    assert not faults, "\n".join(faults)
