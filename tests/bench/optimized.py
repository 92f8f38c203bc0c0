"""Optimized builds for the programs that measure."""

import os
import shlex
import subprocess
import sys

_TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../..")


def build(name, targets):
    """Builds the targets and returns the folder with the results, by package. If that fails, the script `name` ends."""
    bazel = shlex.split(os.environ.get("VIADUCT_BAZEL", "bazel"))
    try:
        subprocess.run([*bazel, "build", "--config=opt", *targets], cwd=_TOP, check=True, stdout=sys.stderr)
        # Not through the link bazel-bin, which any other build in this folder may move.
        return subprocess.run([*bazel, "info", "--config=opt", "bazel-bin"], cwd=_TOP, check=True, stdout=subprocess.PIPE,
                              text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit("%s: nothing was built: %s" % (name, error))
