"""Refuses to configure on a machine whose memory order the library has not been proved on."""

_SUPPORTED = ["x86_64"]

def _impl(ctx):
    result = ctx.execute(["uname", "-s", "-m"])
    if result.return_code != 0:
        fail("cannot run uname: " + result.stderr)
    system, machine = result.stdout.strip().split(" ", 1)
    if system != "Linux" or machine not in _SUPPORTED:
        fail(("\n\nViaduct is built and tested on Linux on %s only; this is %s on %s.\n" +
              "Its rings in shared memory rely on that machine's memory order; another one is added\n" +
              "to tools/build_rules/platform.bzl when it has been proved there.\n") %
             (", ".join(_SUPPORTED), system, machine))
    ctx.file("BUILD.bazel", "")
    ctx.file("platform.bzl", "PLATFORM = %s\n" % repr(machine))

supported_platform = repository_rule(
    implementation = _impl,
    doc = "A repository whose file platform.bzl exists only on a supported machine.",
    local = True,
)
