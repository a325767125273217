#!/usr/bin/env bash
# the documentation builds without a warning, and no link of it is dead
source .ci/setup.sh

RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --quiet
# Rustdoc checks the links between items only, and a page of docs/ has links to files.
python3 - "$shared/doc/dml_cuda" << 'EOF'
import pathlib, re, sys

dead = []
for page in pathlib.Path(sys.argv[1]).rglob("*.html"):
    for target in re.findall(r'href="([^"#?$]+)["#?]', page.read_text(encoding="utf-8")):
        if not re.match(r"\w+:", target) and not (page.parent / target).exists():
            dead.append(f"{page.name}: the link {target} leads nowhere")
sys.exit("\n".join(dead) or None)
EOF
