"""How the documentation site is built: `make docs`."""

import os
import re
import tempfile
from pathlib import Path

import gradientdice

project = "gradientdice"
author = "The gradientdice developers"
copyright = "2026, the gradientdice developers"
release = version = gradientdice.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["tests"]
templates_path = ["_templates"]

# Pages. There is no server of scripts for formulas behind this site: formulas are written in Unicode.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# Tutorials are run anew by every build, and one cell that fails ends it. A cache would hide changes of the library.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_markdown_format = "myst"

# Cells run with settings of their own: neither startup files of whoever builds, nor remarks on how kernels are reached.
SETTINGS = tempfile.TemporaryDirectory()
os.environ["IPYTHONDIR"] = SETTINGS.name
PROFILE = Path(SETTINGS.name, "profile_default")
PROFILE.mkdir()
PROFILE.joinpath("ipython_kernel_config.py").write_text("c = get_config()\nc.IPKernelApp.log_level = 'ERROR'\n")

# The reference. Docstrings are plain English with names in single backticks.
default_role = "code"
autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = f"gradientdice {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "gradientdice", "image_light": "_static/icon.svg", "image_dark": "_static/icon.svg"},
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}  # light or dark as the system is
html_sidebars = {"index": [], "comparison": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"  # a command goes on after a line that ends so

# Pages that are files of the repository's root, where they belong: a page of the site includes each.
ROOT_FILES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def link_within_the_site(app, docname, content):
    """Links of pages to files of the repository's root lead to their pages here."""
    for file, page in ROOT_FILES.items():
        content[0] = re.sub(rf"\]\((\.\./)+{re.escape(file)}", f"](/{page}", content[0])


def escape_formulas(app, what, name, obj, options, lines):
    """|x|, x* and x_ are formulas in docstrings, not markup; what is in backticks and in examples stays as it is."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("`")
            parts[::2] = [re.sub(r"(?<!\\)([|*]|_(?!\w))", r"\\\1", part) for part in parts[::2]]
            lines[number] = "`".join(parts)


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", link_within_the_site)
    app.connect("autodoc-process-docstring", escape_formulas, priority=100)  # before the sections are read
