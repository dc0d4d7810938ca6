"""Takes the pictures of the bundled log's report that the pages show, light and dark: `python docs/pictures.py`.

It needs the extra `docs` and Chromium.
"""

import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import gradientdice as gd
from gradientdice import demo

DOCS = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# The report as on a desk: the answer and the first pictures below it. For the landing page, where a picture has half
# the width, as in a narrow window: the answer alone, whose words can be read there.
SIZES = {"report": (1120, 920), "answer": (560, 625)}
# As many as can be told apart here, in a third of the bytes.
COLOURS = 64


def main() -> None:
    """Writes report.png, report_dark.png, answer.png and answer_dark.png."""
    estimate = gd.evaluate(demo.make_log(), gd.TabularPolicy(demo.TARGET), discount=demo.DISCOUNT)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = Path(folder, "report.html")
        estimate.report(report)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme, ending in (("light", ".png"), ("dark", "_dark.png")):
            for name, (width, height) in SIZES.items():
                page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": height})
                page.goto(report.as_uri())
                path = DOCS / f"{name}{ending}"
                page.screenshot(path=path)
                Image.open(path).quantize(COLOURS).save(path, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
