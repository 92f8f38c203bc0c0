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

_PREFACE = """DAT_SUCCESS; or one of the types below, which
.B DAT_GET_TYPE()
takes out of the value. The value of a failure has the class DAT_CLASS_ERROR and often a subtype;
.BR dat_strerror (3)
names both. A call that finds no memory answers DAT_INSUFFICIENT_RESOURCES, whether that is listed or not."""

MANUAL = manual.Manual(_HERE, "Direct Access Transport", [("dat/udat.h", "1.2"), ("dat2/udat.h", "2.0")], "DAT_",
                       _PREFACE.splitlines())

if __name__ == "__main__":
    sys.exit(MANUAL.main(__doc__))
