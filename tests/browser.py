"""What a browser shows of a page of the documentation's site, looked at from inside of the page."""

import contextlib
import functools
import http.server
import shutil
import threading

import pytest

WIDTHS = (360, 768, 1440)
COLOURS = ("light", "dark")
NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


@contextlib.contextmanager
def started():
    """A headless Chromium; a test that has none here is skipped, with the reason."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'pydtconv[browser]'")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("needs a Chromium in PATH (Debian: apt install chromium)")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=OPTIONS)
        yield browser
        browser.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """The address of a folder that is served to this machine only, as `make docs-serve` does."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def watched(browser, colours, address):
    """A page that records in `page.faults` errors of scripts, messages of the console, and what could not be loaded."""
    page = browser.new_page(color_scheme=colours)
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(f"script: {error}"))
    page.on(
        "console",
        lambda line: page.faults.append(f"console: {line.text}") if line.type in ("error", "warning") else None,
    )
    page.on("requestfailed", lambda request: page.faults.append(f"not loaded: {request.url}"))
    page.on(
        "response",
        lambda answer: page.faults.append(f"{answer.status}: {answer.url}") if answer.status >= 400 else None,
    )
    page.on(
        "request",
        lambda request: (
            page.faults.append(f"from outside: {request.url}")
            if not request.url.startswith((address, "data:", "blob:"))
            else None
        ),
    )
    return page


#: faults of a page as lines: wider than the window, cut off, pictures that did not load, texts that cannot be read
LOOK = """() => {
  const faults = [], root = document.documentElement;
  const name = e => `<${e.tagName.toLowerCase()} class="${e.getAttribute('class') || ''}">`;
  const excess = Math.max(root.scrollWidth, document.body.scrollWidth) - root.clientWidth;
  if (excess > 0) faults.push(`${excess} px wider than the window`);
  const scrolls = e => {
    for (; e && !e.matches('article'); e = e.parentElement)
      if (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX)) return true;
    return false;
  };
  for (const e of document.querySelectorAll('article *')) {
    const box = e.getBoundingClientRect();
    if (box.width > 1 && box.right > root.clientWidth + 1 && !scrolls(e.parentElement) && !scrolls(e))
      faults.push(`${name(e)} ends ${Math.round(box.right - root.clientWidth)} px right of the window`);
    const style = getComputedStyle(e);
    if (style.overflowX === 'hidden' && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1)
      faults.push(`${name(e)} is cut off`);
  }
  for (let e = document.querySelector('article'); e && e !== document.body; e = e.parentElement)
    if (e.scrollWidth > e.clientWidth + 1)
      faults.push(`${name(e)} scrolls as a whole by ${e.scrollWidth - e.clientWidth} px`);
  for (const image of document.images) {
    if (!image.complete || !image.naturalWidth) faults.push(`not loaded: ${image.src}`);
    if (!image.alt) faults.push(`no text: ${image.src}`);
    if (image.getBoundingClientRect().right > root.clientWidth + 1) faults.push(`wider than the window: ${image.src}`);
  }
  const colour = text => {
    const c = text.startsWith('color(srgb')
      ? text.match(/[\\d.]+(?=[ )])/g).map((v, i) => i < 3 ? 255 * v : +v) : text.match(/[\\d.]+/g).map(Number);
    return [c[0], c[1], c[2], c.length > 3 ? c[3] : 1];
  };
  const over = (a, b) => [0, 1, 2].map(i => a[3] * a[i] + (1 - a[3]) * b[i]).concat([1]);
  const ground = e => {
    const layers = [];
    for (; e; e = e.parentElement) {
      const c = colour(getComputedStyle(e).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const light = c => {
    const [r, g, b] = c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), seen = new Set();
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || !e.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (!e.getClientRects().length || e.closest('script, style, .visually-hidden, .headerlink')) continue;
    const behind = ground(e), ink = over(colour(getComputedStyle(e).color), behind);
    const [a, b] = [light(ink), light(behind)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    const key = `${name(e)} ${ink} ${behind}`;
    if (contrast < 4.5 && !seen.has(key)) {
      seen.add(key);
      faults.push(`contrast ${contrast.toFixed(2)}: ${name(e)} "${text.slice(0, 30)}"`);
    }
  }
  return faults;
}"""
