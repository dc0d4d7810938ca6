"""Takes the pictures of the bundled log's report that the pages show, light and dark: `python docs/pictures.py`.

It needs the extra `docs` and Chromium.
"""

import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import gradientdice as gd
from gradientdice.experiments import demo

DOCS = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# The answer and the first pictures below it.
WIDTH, HEIGHT = 1120, 920
# As many as can be told apart here, in a third of the bytes.
COLOURS = 64


def main() -> None:
    """Writes report.png and report_dark.png."""
    estimate = gd.evaluate(demo.make_log(), gd.TabularPolicy(demo.TARGET), discount=demo.DISCOUNT)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = Path(folder, "report.html")
        estimate.report(report)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme, name in (("light", "report.png"), ("dark", "report_dark.png")):
            page = browser.new_page(color_scheme=scheme, viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(report.as_uri())
            page.screenshot(path=DOCS / name)
            Image.open(DOCS / name).quantize(COLOURS).save(DOCS / name, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
