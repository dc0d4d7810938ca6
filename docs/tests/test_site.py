"""The built site in a real browser: every page opens, every link leads somewhere, nothing is reported on the console.

Run by `make test-docs`, after `make docs`. Pictures of the main pages, light and dark, wide and narrow, are written to
build/pictures, to be looked at.
"""

import functools
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from playwright.sync_api import sync_playwright

import gradientdice as gd
from gradientdice import demo

ROOT = Path(__file__).parents[2]
SITE, PICTURES = ROOT / "build/docs", ROOT / "build/pictures"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MAIN = (
    "index",
    "tutorials/index",
    "tutorials/first_answer",
    "tutorials/when_not_to_trust",
    "how_to",
    "checks",
    "explanation/idea",
    "explanation/intervals",
    "reference/api",
    "reference/command_line",
    "reference/generated/gradientdice.evaluate",
    "results/control",
    "results/ranking",
    "results/scale",
    "large_logs",
    "comparison",
)
ABORTED = "net::ERR_ABORTED"
SIZES = {"wide": (1400, 900), "narrow": (390, 844)}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):  # one line for each request would hide what pytest says
        pass


@pytest.fixture(scope="session")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser():
    assert CHROMIUM is not None, "install Chromium: this test needs a real browser"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def context(browser):
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield context


def watched(context, address):
    """A page, and the list of what goes wrong on it: console errors, exceptions, failed or foreign requests."""
    page, wrong = context.new_page(), []

    def note(is_wrong, what):
        if is_wrong:
            wrong.append(what)

    page.on("console", lambda message: note(message.type in ("error", "warning"), message.text))
    page.on("pageerror", lambda error: note(True, str(error)))
    # A request that the browser gave up because the page was left, such as that of an icon, did not fail.
    page.on("requestfailed", lambda request: note(request.failure != ABORTED, f"failed: {request.url}"))
    page.on("response", lambda response: note(response.status >= 400, f"{response.status}: {response.url}"))
    page.on("request", lambda request: note(not request.url.startswith((address, "data:")), request.url))
    return page, wrong


@pytest.fixture(scope="session")
def opened(context, address):
    """What the browser found on each page: the problems, the anchors, the links, and whether it is too wide."""
    found = {}
    page, wrong = watched(context, address)
    for name in PAGES:
        wrong.clear()
        page.goto(address + name, wait_until="load")
        found[name] = {
            "wrong": list(wrong),
            "anchors": set(page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")),
            "links": page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.href)"),
            "broken images": page.evaluate(
                "[...document.images].filter(i => i.loading != 'lazy' && !i.naturalWidth).map(i => i.src)"
            ),
            # Blocks that are shown at once: what is folded has no width.
            "wide code": page.evaluate(
                "[...document.querySelectorAll('div.highlight:not(.output *) > pre')]"
                ".filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1).map(e => e.innerText.slice(0, 60))"
            ),
            "heading": page.evaluate("document.querySelector('h1')?.innerText ?? ''"),
        }
    page.close()
    return found


def test_there_is_a_site():
    assert {"index.html", "search.html", "tutorials/first_answer.html"} <= set(PAGES)


def test_no_page_reports_an_error(opened):
    assert {name: page["wrong"] for name, page in opened.items() if page["wrong"]} == {}


def test_every_page_has_a_heading_and_its_images(opened):
    assert [name for name, page in opened.items() if not page["heading"]] == []
    assert [(name, page["broken images"]) for name, page in opened.items() if page["broken images"]] == []


def test_code_is_shown_whole(opened):
    assert {name: page["wide code"] for name, page in opened.items() if page["wide code"]} == {}


def test_every_internal_link_leads_to_a_page_and_an_anchor(opened, address):
    dead = set()
    for name, page in opened.items():
        for link in page["links"]:
            place, anchor = urldefrag(link)
            if not place.startswith(address):
                continue
            file = unquote(place.removeprefix(address).split("?")[0]) or "index.html"
            if not (SITE / file).is_file() or (
                anchor and file in opened and unquote(anchor) not in opened[file]["anchors"]
            ):
                dead.add((name, link.removeprefix(address)))
    assert sorted(dead) == []


def test_the_page_of_checks_has_the_anchor_of_each(opened):
    estimate = gd.evaluate(demo.make_log(), gd.TabularPolicy(demo.TARGET), discount=demo.DISCOUNT)
    assert {check.anchor for check in estimate.checks} <= opened["checks.html"]["anchors"]


def test_search_finds_a_name(context, address):
    page, wrong = watched(context, address)
    page.goto(address + "search.html?q=GradientDICE")
    page.wait_for_selector("#search-results ul.search li a", timeout=30_000)
    assert page.locator("#search-results li").count() > 3 and wrong == []
    page.close()


def test_the_theme_switches(browser, address):
    backgrounds = []
    for scheme in ("light", "dark"):
        with browser.new_context(color_scheme=scheme) as context:
            page = context.new_page()
            page.goto(address)
            backgrounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert backgrounds[0] != backgrounds[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_pictures(browser, address, scheme, size):
    """Pictures to look at; a page may not be wider than the window."""
    width, height = SIZES[size]
    PICTURES.mkdir(parents=True, exist_ok=True)
    too_wide = []
    with browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}) as context:
        for name in MAIN:
            page = context.new_page()
            page.goto(f"{address}{name}.html", wait_until="load")
            page.screenshot(path=PICTURES / f"{name.replace('/', '-')}-{size}-{scheme}.png")
            if page.evaluate("document.documentElement.scrollWidth") > width:
                too_wide.append(name)
            page.close()
    assert too_wide == []
