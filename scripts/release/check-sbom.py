#!/usr/bin/env python3
"""Validates bills of materials with CycloneDX's own library. Arguments: the files."""

import json
import pathlib
import re
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

for path in sys.argv[1:]:
    text = pathlib.Path(path).read_text()
    bill = json.loads(text)
    if error := JsonStrictValidator(SchemaVersion.from_version(bill["specVersion"])).validate_str(text):
        sys.exit(f"{path}: {error}")
    for component in bill["components"]:
        if not component.get("licenses"):
            sys.exit(f"{path}: {component['name']} has no license")
    if "serialNumber" not in bill:
        sys.exit(f"{path} has no serial number")
    if found := re.search(r"(?<!path\+)file:[^\"]*|path\+file://(?!/dml-cuda)[^\"]*", text):
        sys.exit(f"{path} names {found[0]}, must name no folder of a machine")
    print(f"{pathlib.Path(*pathlib.Path(path).parts[-2:])}: CycloneDX {bill['specVersion']}, {len(bill['components'])} components")
