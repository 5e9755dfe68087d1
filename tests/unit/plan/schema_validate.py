"""Validates the shipped plans against the published schema with an independent validator (python3-jsonschema).

Usage: schema_validate.py SCHEMA PLANS_FOLDER MISTAKES_FOLDER REPORT_SCHEMA
Exit codes: 0 valid, 1 not, 77 there is no jsonschema.
"""

import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: this Python has no jsonschema (Debian: python3-jsonschema)")
    sys.exit(77)

# Mistakes that a schema cannot see: they need values compared with each other or with the op's rules.
BEYOND_A_SCHEMA = {
    "factors that FP16 cannot hold", "name of two lines", "integer as a float", "version as a float",
    "number no double can hold", "range out of bounds", "range with step 0", "range that goes the wrong way",
    "range whose step leads away", "pow2 downwards", "pow2 beyond any integer", "pow2 beyond the range",
    "pow2 below the range", "illegal combination", "illegal combination with inherited parameters",
    "port that these parameters lack", "unknown port", "port in the exact leg", "one exact port",
    "zip of an unknown axis", "zip of unequal lengths", "zip of a list and one value", "axis zipped twice",
    "axis zipped with itself", "exclude of everything", "exclude names no field", "exclude with an unknown mode",
    "exclude with an unknown backend", "exclude with a wrong value", "exclude with an empty list",
    "exclude with an unknown distribution", "exclude with inputs as an object", "exclude with an unknown variable",
    "exclude in defaults names no field", "exclude by the device", "xfail with a bad match", "xfail of no library",
    "xfail of an empty range of architectures", "xfail of an empty range of versions", "too many cases",
    "more cases than can be counted", "same case with other gates", "no op", "no mode", "missing parameter",
    "no params at all",
}


def sections(folder):
    for path in sorted(folder.glob("*.txt")):
        if path.name in ("syntax.txt", "warnings.txt"):
            continue
        for section in path.read_text(encoding="utf-8").split("=== ")[1:]:
            name, rest = section.split("\n", 1)
            yield name, rest.split("\n---\n", 1)[0]


def check_examples(schema):
    """Examples and defaults of every rule are valid under it. Returns how many there are, and how many are not."""
    validator = jsonschema.Draft7Validator(schema)
    seen = wrong = 0

    def visit(node, path):
        nonlocal seen, wrong
        if isinstance(node, list):
            for at, item in enumerate(node):
                visit(item, path + [at])
        if not isinstance(node, dict):
            return
        values = node["examples"] if isinstance(node.get("examples"), list) else []
        values = values + ([node["default"]] if "default" in node and "properties" != (path or [""])[-1] else [])
        for value in values:
            seen += 1
            for error in validator.evolve(schema=node).iter_errors(value):
                print(f"{path}: {json.dumps(value)}: {error.message[:200]}")
                wrong += 1
        for key, value in node.items():
            if key not in ("examples", "default", "enum", "const"):
                visit(value, path + [key])

    visit(schema, [])
    return seen, wrong


def main():
    schema_path, plans, mistakes, report_path = (pathlib.Path(argument) for argument in sys.argv[1:5])
    schema = json.loads(schema_path.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failures = 0
    for one in (schema, json.loads(report_path.read_text(encoding="utf-8"))):
        jsonschema.Draft7Validator.check_schema(one)
        seen, wrong = check_examples(one)
        print(f"{seen} examples and defaults of {one['$id']}")
        failures += wrong + (seen == 0)
    failures += not json.loads(report_path.read_text(encoding="utf-8")).get("examples")  # of a whole report
    valid = 0
    for path in sorted(plans.rglob("*.json")):
        for error in validator.iter_errors(json.loads(path.read_text(encoding="utf-8"))):
            print(f"{path}: {list(error.absolute_path)}: {error.message[:200]}")
            failures += 1
        valid += 1
    refused = 0
    for name, text in sections(mistakes):
        if text.startswith('"'):
            text = ('{"version": 1, "defaults": {"op": "gemm", "params": {"m": 1, "n": 1, "k": 1}, "mode": "bf16"},'
                    ' "cases": [{"op": "gemm",' + text + "}]}")
        accepted = validator.is_valid(json.loads(text, object_pairs_hook=dict))
        if accepted and name not in BEYOND_A_SCHEMA:
            print(f"the schema accepts the mistake {name!r}")
            failures += 1
        if not accepted and name in BEYOND_A_SCHEMA:
            print(f"the schema refuses {name!r}, which is listed as beyond it")
            failures += 1
        refused += not accepted
    print(f"{valid} plans are valid, {refused} mistakes refused")
    return 1 if failures or not valid or not refused else 0


sys.exit(main())
