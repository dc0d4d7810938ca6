"""What `make audit` says: never that nothing was found where nothing was looked up."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / ".ci" / "audit.py"


def audit(text: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, str(SCRIPT)], input=text, capture_output=True, text=True)
    return done.returncode, done.stdout


def test_an_index_that_cannot_be_reached():
    skipped = {"dependencies": [{"name": "jax", "skip_reason": "not found on PyPI and could not be audited"}]}
    for text in ("", "Traceback", "{}", json.dumps(skipped)):
        assert audit(text) == (0, "Nothing was audited: no index of known vulnerabilities is reachable.\n")


def test_what_was_found():
    fine = {"name": "jax", "version": "0.10", "vulns": []}
    bad = {"name": "jinja2", "version": "3.0", "vulns": [{"id": "CVE-1"}]}
    unknown = {"name": "own", "skip_reason": "not found"}
    code, text = audit(json.dumps({"dependencies": [fine, unknown]}))
    assert code == 0 and "1 of 2 versions: 0 with" in text and "Not found there: own." in text
    code, text = audit(json.dumps({"dependencies": [fine, bad]}))
    assert code == 1 and "jinja2 3.0: CVE-1" in text
