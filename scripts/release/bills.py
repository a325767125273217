"""Makes bills of materials publishable, and validates them by CycloneDX's schema: bills.py SOURCE FOLDER BILL...

cargo-cyclonedx names SOURCE, the folder in which it ran, and gives no serial number. The results are in FOLDER.
"""

import json
import pathlib
import re
import sys
import uuid

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

source, folder, *bills = sys.argv[1:]
for path in map(pathlib.Path, bills):
    text = path.read_text(encoding="utf-8").replace(
        f"path+file://{source}", "path+file:///dml-cuda"
    )
    text = re.sub(r"\?download_url=file:[^\"#]*", "", text)
    # A commit always has the same number.
    bill = {
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, text)}"
    } | json.loads(text)
    text = json.dumps(bill, indent=2) + "\n"
    if error := JsonStrictValidator(
        SchemaVersion.from_version(bill["specVersion"])
    ).validate_str(text):
        sys.exit(f"{path}: {error}")
    if bare := [
        component["name"]
        for component in bill["components"]
        if not component.get("licenses")
    ]:
        sys.exit(f"{path}: {', '.join(bare)} must have a license")
    if found := re.search(
        r"(?<!path\+)file:[^\"]*|path\+file://(?!/dml-cuda)[^\"]*", text
    ):
        sys.exit(f"{path} names {found[0]}, but must name no folder of a machine")
    (pathlib.Path(folder) / path.name).write_text(text, encoding="utf-8")
    print(
        f"{path.name}: CycloneDX {bill['specVersion']}, {len(bill['components'])} components"
    )
