"""What `make check-links` says of addresses, and that the project's own stand in one place."""

import re
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "links.py"


class OnePage(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/there" else 404)
        self.end_headers()

    def log_message(self, format, *args):
        pass


@pytest.fixture
def address():
    with HTTPServer(("127.0.0.1", 0), OnePage) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def checked(path: Path, text: str) -> tuple[int, str]:
    path.write_text(text)
    done = subprocess.run([sys.executable, str(SCRIPT), str(path)], capture_output=True, text=True)
    return done.returncode, done.stdout


def test_a_dead_address_is_named_with_its_page(address, tmp_path):
    page = tmp_path / "page.md"
    assert checked(page, f"[one]({address}/there), again `{address}/there`.") == (0, "1 of 1 addresses open.\n")
    code, text = checked(page, f"See {address}/there, {address}/gone. And http://127.0.0.1:9/none.")
    assert code == 1 and "1 of 3 addresses open." in text
    assert f"{address}/gone (page.md): HTTP Error 404" in text and "http://127.0.0.1:9/none (page.md): " in text


def test_the_project_s_addresses_agree():
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    cited = re.findall(r"^repository-code: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited == [urls["Repository"]] == [urls["Homepage"]]
    assert urls["Issues"].startswith(urls["Repository"]) and urls["Changelog"].startswith(urls["Repository"])


def test_the_package_and_its_pages_name_the_project_s_addresses_nowhere_else():
    """They may change with where the project is kept: pyproject.toml and CITATION.cff are then all there is to edit."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    hosts = {re.sub(r"https://([^/]+/?\w*).*", r"\1", urls[name]) for name in ("Repository", "Documentation")}
    folders = [ROOT / "src", ROOT / "studies", ROOT / "docs", ROOT / ".github"]
    files = [path for folder in folders for kind in ("py", "md", "html", "yml") for path in folder.rglob(f"*.{kind}")]
    assert len(hosts) == 2 and len(files) > 300
    assert [path.name for path in [*files, *ROOT.glob("*.md")] if any(host in path.read_text() for host in hosts)] == []
