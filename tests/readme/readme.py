"""Reads README.md: its fenced blocks, and the programs among them."""

import re


def blocks(language, path="README.md"):
    """The texts of the fenced blocks of one language, in their order."""
    with open(path, encoding="utf-8") as stream:
        return re.findall(r"^```%s\n(.*?)^```$" % re.escape(language), stream.read(), re.M | re.S)


def programs():
    """{file name: source} of the C programs, which begin with their name in a comment."""
    return {re.match(r"/\* (\w+\.c) \*/\n", text).group(1): text for text in blocks("c")}
