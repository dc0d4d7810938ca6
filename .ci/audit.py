"""Says what pip-audit found, from its JSON on standard input; ends with 1 if a version has a known vulnerability.

pip-audit itself reports "No known vulnerabilities found" also where it could look nothing up.
"""

import json
import sys


def main() -> int:
    """Prints a line on how many versions were looked up, and one for each that is vulnerable."""
    try:
        found = json.load(sys.stdin)["dependencies"]
    except (ValueError, KeyError):
        found = []
    looked_up = [one for one in found if "vulns" in one]
    if not looked_up:
        print("Nothing was audited: no index of known vulnerabilities is reachable.")
        return 0
    vulnerable = [one for one in looked_up if one["vulns"]]
    for one in vulnerable:
        print(f"{one['name']} {one['version']}: {', '.join(each['id'] for each in one['vulns'])}")
    skipped = ", ".join(one["name"] for one in found if "vulns" not in one)
    print(f"Looked up {len(looked_up)} of {len(found)} versions: {len(vulnerable)} with known vulnerabilities.")
    if skipped:
        print(f"Not found there: {skipped}.")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
