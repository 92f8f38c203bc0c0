"""The layers of the project, and a check of every source file against them.

check(root) returns the violations in a source tree as "file:line: what is wrong".
"""

import os
import re

# Which layer may include which. A file belongs to the longest prefix that its path starts with.
# vipl -> compat -> dat/core -> verbs; dat/api and dat/registry -> dat/core -> verbs.
_BELOW_CORE = {"verbs", "verbs/base", "verbs/rdma"}
_CORE = _BELOW_CORE | {"dat/core"}
LAYERS = {
    "verbs/base": {"verbs/base"},
    "verbs/rdma": _BELOW_CORE,
    "verbs": _BELOW_CORE,
    "dat/core": _CORE,
    "dat/include": {"dat/include"},
    "dat/registry": _CORE | {"dat/registry", "dat/include"},
    "dat/api": _CORE | {"dat/api", "dat/registry", "dat/include"},
    # Programs; the servers of both share a protocol.
    "dat/examples": {"dat/examples", "dat/include", "vipl/examples"},
    "vipl/include": {"vipl/include"},
    "vipl/examples": {"vipl/examples", "vipl/include"},
    "compat": _CORE | {"compat", "vipl/include"},
    "vipl": _CORE | {"vipl", "vipl/include", "compat"},
    "tests": None,  # everything
    "tests/lab": None,
    "tests/rdma_mock": None,
    "tools": None,
}

# Where "#include <dat/udat.h>" and "#include <vipl.h>" are found.
_INCLUDE_PATHS = ("", "vipl/include", "dat/include")

_RDMA = re.compile(r"(infiniband|rdma)/")

# The engine gets these from outside instead: a clock, an executor, locks (verbs/base) and devices (verbs).
_NOT_IN_CORE = re.compile(
    r"(thread|mutex|shared_mutex|condition_variable|future|semaphore|stop_token|latch|barrier|chrono|ctime|threads\.h|time\.h|"
    r"pthread\.h|sched\.h|semaphore\.h|poll\.h|netdb\.h|ifaddrs\.h|sys/(time|times|timerfd|socket|un|epoll|eventfd|poll|select|"
    r"uio)\.h|netinet/.*|arpa/.*|net/.*|absl/time/clock\.h|absl/synchronization/.*)$")
_NOT_CALLED_IN_CORE = re.compile(
    r"\b(clock_(?:gettime|getres|nanosleep)|gettimeofday|nanosleep|usleep|timer_create|timerfd_\w+|pthread_\w+|epoll_\w+|"
    r"absl::Now|absl::SleepFor|std::j?thread|std::(?:recursive_|timed_|shared_)?mutex|std::condition_variable\w*|"
    r"std::this_thread|std::async|(?:std::)?chrono::\w*clock)\b"
    r"|(?<![\w:])::(?:socket|bind|connect|listen|accept4?|send(?:to|msg)?|recv(?:from|msg)?|poll|time|sleep)\s*\(")

# Some old programs define sem_* themselves, and a library that sets a signal handler takes it from the program.
_NOT_IN_LIBRARIES = re.compile(r"(semaphore\.h|absl/synchronization/.*)$")
_NOT_CALLED_IN_LIBRARIES = re.compile(r"\b(sem_(?:init|open|wait|post|timedwait|destroy)|sigaction|signal)\s*\(")

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
_SOURCES = (".c", ".cc", ".h")


def layer_of(path):
    """The layer that a path from the top belongs to, or None."""
    found = [layer for layer in LAYERS if path == layer or path.startswith(layer + "/")]
    return max(found, key=len) if found else None


def source_files(root):
    """Yields the paths of all C and C++ files of the project, from `root`."""
    for top in sorted({layer.split("/")[0] for layer in LAYERS}):
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(_SOURCES):
                    yield os.path.relpath(os.path.join(folder, name), root)


def code_lines(text):
    """The lines of `text` with comments blank and literals empty, but with the names in #include."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|(?m:^[ \t]*#[ \t]*include[^\n]*)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def replacement(match):
        found = match.group(0)
        if found.startswith(("//", "/*")):
            return "\n" * found.count("\n")
        return found if found.lstrip().startswith("#") else found[0] * 2

    return pattern.sub(replacement, text).split("\n")


def resolve(root, includer, name, quoted):
    """The path from `root` of an included file of the project, or None for a file from elsewhere."""
    places = ([os.path.dirname(includer)] if quoted else []) + list(_INCLUDE_PATHS)
    for place in places:
        path = os.path.normpath(os.path.join(place, name))
        if os.path.isfile(os.path.join(root, path)):
            return path
    # A generated header has no file; its path says where it belongs.
    return name if layer_of(name) and quoted else None


def _check_include(root, path, layer, name, quoted):
    included = resolve(root, path, name, quoted)
    if included is not None:
        allowed, target = LAYERS[layer], layer_of(included)
        if allowed is not None and target not in allowed:
            yield "%s may not know %s: it includes %s" % (layer, target or "that folder", included)
        return
    if _RDMA.match(name) and layer not in ("verbs/rdma", "tests/lab", "tests/rdma_mock"):
        yield "<%s> belongs in verbs/rdma alone" % name
    if _is_test(path):
        return
    if layer == "dat/core" and _NOT_IN_CORE.match(name):
        yield "dat/core gets clock, threads and sockets from verbs: it includes <%s>" % name
    if LAYERS[layer] is not None and not layer.endswith("/examples") and _NOT_IN_LIBRARIES.match(name):
        yield "<%s> may not be used in a library" % name


def _is_test(path):
    return os.path.splitext(path)[0].endswith(("_test", "_benchmark", "_fuzz"))


def check_file(root, path):
    """Yields the violations in one file."""
    layer = layer_of(path)
    with open(os.path.join(root, path), encoding="utf-8") as stream:
        lines = code_lines(stream.read())
    library = LAYERS[layer] is not None and not layer.endswith("/examples") and not _is_test(path)
    for number, line in enumerate(lines, 1):
        include = _INCLUDE.match(line)
        if include:
            problems = list(_check_include(root, path, layer, include.group(2), include.group(1) == '"'))
        else:
            problems = []
            found = _NOT_CALLED_IN_CORE.search(line) if library and layer == "dat/core" else None
            if found:
                problems.append("dat/core gets clock, threads and sockets from verbs: it uses %s" % found.group(0))
            found = _NOT_CALLED_IN_LIBRARIES.search(line) if library else None
            if found:
                problems.append("%s may not be used in a library" % found.group(1))
        for problem in problems:
            yield "%s:%d: %s" % (path, number, problem)


def check(root):
    """The violations of the layers in the tree at `root`."""
    return [problem for path in source_files(root) for problem in check_file(root, path)]
