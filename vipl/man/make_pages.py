#!/usr/bin/env python3
"""Makes the manual pages of section 3 from functions.txt and the texts NAME.3.in, as tools/manual describes.

usage: make_pages.py FOLDER
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(_HERE)))

from tools.manual import manual  # noqa: E402, behind the path

MANUAL = manual.Manual(_HERE, "VI Provider Library", [("vipl.h", "")], "VIP_")

if __name__ == "__main__":
    sys.exit(MANUAL.main(__doc__))
