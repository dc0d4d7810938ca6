"""Opens every outside address that the package and its pages give to a reader; ends with 1 if one does not open.

The project's own addresses are in pyproject.toml, and in CITATION.cff, which a test compares with it.
"""

import re
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
ADDRESS = re.compile(r"https?://[^\s()<>\[\]\"'`,;]+")
SECONDS = 20  # for a slow server; one that takes longer is as good as dead to a reader
# Some servers refuse a request that does not name a browser.
BROWSER = {"User-Agent": "Mozilla/5.0 (links of gradientdice)"}


def pages() -> list[Path]:
    """The files whose addresses readers follow."""
    data = [ROOT / "pyproject.toml", ROOT / "CITATION.cff"]
    return data + sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md"))


def addresses(files: list[Path]) -> dict[str, list[str]]:
    """Each address, with the names of the files that have it."""
    found: dict[str, list[str]] = {}
    for file in files:
        for address in sorted(set(ADDRESS.findall(file.read_text(encoding="utf-8")))):
            found.setdefault(address.rstrip("."), []).append(file.name)
    return found


def answer(address: str) -> str:
    """What is wrong with an address; empty if it opens."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=BROWSER), timeout=SECONDS):
            return ""
    except (OSError, ValueError) as error:  # an error of HTTP is an OSError, a malformed address a ValueError
        return str(error) or type(error).__name__


def main(files: list[Path]) -> int:
    """Prints a line for each address that does not open, and how many do."""
    found = addresses(files or pages())
    wrong = {address: why for address in sorted(found) if (why := answer(address))}
    for address, why in wrong.items():
        print(f"{address} ({', '.join(found[address])}): {why}")
    print(f"{len(found) - len(wrong)} of {len(found)} addresses open.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
