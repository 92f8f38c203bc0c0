#!/usr/bin/env python3
"""Stand-in for @remote_coverage_tools: adds up coverage data into one LCOV file.

Bazel calls it twice:
  for a test:     --coverage_dir=DIR --output_file=OUT --source_file_manifest=LIST [--filter_sources=REGEX]...
  for all tests:  --reports_file=LIST --output_file=OUT
A test's folder holds gcov's JSON files; the manifest names the files that were instrumented.
"""

import argparse
import collections
import gzip
import json
import os
import re
import sys


class Report:
    """Execution counts of lines and functions, by file."""

    def __init__(self, keep):
        self._keep = keep
        self._lines = collections.defaultdict(collections.Counter)
        self._functions = collections.defaultdict(collections.Counter)
        self._starts = {}

    def add_line(self, source, line, count):
        self._lines[source][line] += count

    def add_function(self, source, name, line, count):
        self._functions[source][name] += count
        self._starts[source, name] = line

    def read_gcov(self, path):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            data = json.load(stream)
        for entry in data["files"]:
            source = os.path.normpath(re.sub(r"^/proc/self/cwd/", "", entry["file"]))
            if not self._keep(source):
                continue
            for line in entry["lines"]:
                self.add_line(source, line["line_number"], line["count"])
            for function in entry["functions"]:
                self.add_function(source, function["name"], function["start_line"], function["execution_count"])

    def read_lcov(self, path):
        source, starts = None, {}
        with open(path, encoding="utf-8") as stream:
            for record in stream:
                key, _, value = record.strip().partition(":")
                if key == "SF":
                    source, starts = (value if self._keep(value) else None), {}
                elif source is None:
                    continue
                elif key == "DA":
                    line, count = value.split(",")[:2]
                    self.add_line(source, int(line), int(count))
                elif key == "FN":
                    line, name = value.split(",", 1)
                    starts[name] = int(line)
                elif key == "FNDA":
                    count, name = value.split(",", 1)
                    self.add_function(source, name, starts.get(name, 0), int(count))

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            for source in sorted(self._lines):
                lines, functions = self._lines[source], self._functions[source]
                out.write("SF:%s\n" % source)
                for name in sorted(functions):
                    out.write("FN:%d,%s\n" % (self._starts[source, name], name))
                for name in sorted(functions):
                    out.write("FNDA:%d,%s\n" % (functions[name], name))
                out.write("FNF:%d\nFNH:%d\n" % (len(functions), sum(1 for n in functions.values() if n)))
                for line in sorted(lines):
                    out.write("DA:%d,%d\n" % (line, lines[line]))
                out.write("LF:%d\nLH:%d\nend_of_record\n" % (len(lines), sum(1 for n in lines.values() if n)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--coverage_dir")
    parser.add_argument("--reports_file")
    parser.add_argument("--source_file_manifest")
    parser.add_argument("--filter_sources", action="append", default=[])
    parser.add_argument("--output_file", required=True)
    args, _ = parser.parse_known_args()

    instrumented = None
    if args.source_file_manifest:
        with open(args.source_file_manifest, encoding="utf-8") as stream:
            instrumented = {os.path.normpath(name) for name in stream.read().split("\n") if name}
    filters = [re.compile(pattern) for pattern in args.filter_sources]

    def keep(source):
        if os.path.isabs(source) or any(f.fullmatch(source) for f in filters):
            return False
        return instrumented is None or source in instrumented

    report = Report(keep)
    if args.coverage_dir:
        for folder, _, names in os.walk(args.coverage_dir):
            for name in names:
                if name.endswith(".gcov.json.gz"):
                    report.read_gcov(os.path.join(folder, name))
    if args.reports_file:
        with open(args.reports_file, encoding="utf-8") as stream:
            for path in stream.read().split():
                # A baseline report names files without counts.
                if path.endswith(".dat") and "baseline" not in path and os.path.exists(path):
                    report.read_lcov(path)
    report.write(args.output_file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
