"""Where the source tree is, for tests that read all of it."""

import os


def root():
    """The real top of the repository: a test's WORKSPACE is a link to the one in the source tree."""
    return os.path.dirname(os.path.realpath("WORKSPACE"))


def files(top):
    """Yields the paths of all files under `top` that belong to the project, from `top`."""
    for folder, folders, names in os.walk(top):
        if os.path.samefile(folder, top):
            # Bazel's links, git's own folder, editors' folders.
            folders[:] = [name for name in folders if not name.startswith(".") or name == ".ci"]
            folders[:] = [name for name in folders if not os.path.islink(os.path.join(top, name))]
            names = [name for name in names if name not in (".git", ".bazelrc.user", "compile_commands.json")]
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), top)
