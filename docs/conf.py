"""The documentation's site: `make docs` builds it into build/docs, warnings are errors."""

import sys
from pathlib import Path

from docutils import nodes

sys.path[:0] = [str(Path(__file__).parent / "_ext")]

import pydtconv  # noqa: E402

project = "pydtconv"
author = "the pydtconv developers"
copyright = "the pydtconv developers, MIT licence"
version = release = pydtconv.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_copybutton", "plain_docstrings"]
exclude_patterns = ["_ext", "notebooks"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "exclude-members": "carries_masks"}
autosummary_generate = True
autosummary_ignore_module_all = False
templates_path = ["_templates"]
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "pydtconv"
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the browser asks for
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# pages that stand alone have no neighbours to list
html_sidebars = {page.stem: [] for page in Path(__file__).parent.glob("*.md")}
html_theme_options = {
    "show_prev_next": True,
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}


def setup(app):
    app.connect("doctree-read", link_pictures)


def link_pictures(app, doctree):
    """Makes each picture a link to its file: it is as wide as the page, and a phone shows the file in any size."""
    for picture in doctree.findall(nodes.image):
        picture["scale"] = 100  # Sphinx links what has a size
