"""Makes bills of materials publishable: bills.py SOURCE FOLDER BILL...

cargo-cyclonedx names SOURCE, the folder in which it ran, and gives no serial number. The results are in FOLDER.
"""

import json
import pathlib
import re
import sys
import uuid

source, folder, *bills = sys.argv[1:]
for path in map(pathlib.Path, bills):
    text = path.read_text(encoding="utf-8").replace(f"path+file://{source}", "path+file:///dml-cuda")
    text = re.sub(r"\?download_url=file:[^\"#]*", "", text)
    # A commit always has the same number.
    bill = {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, text)}"} | json.loads(text)
    (pathlib.Path(folder) / path.name).write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
