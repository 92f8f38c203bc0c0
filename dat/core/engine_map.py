#!/usr/bin/env python3
"""Writes libviaduct's version script: one node that names this very build.

Usage: engine_map.py VERSION_HEADER HEADER...

The node's name ends with a hash over the headers that the faces are compiled against, so that a
face of another build fails at load and not at run. Only the engine's own symbols are shown.
"""
import hashlib
import re
import sys

version = re.search(r'VIADUCT_VERSION "([^"]+)"', open(sys.argv[1], encoding="utf-8").read()).group(1)
digest = hashlib.sha256()
for path in sorted(sys.argv[2:]):
    with open(path, "rb") as header:
        digest.update(header.read())
print("VIADUCT_%s_%s {" % (version, digest.hexdigest()[:16]))
print("  global: *7viaduct*;")
print("  local: *;")
print("};")
