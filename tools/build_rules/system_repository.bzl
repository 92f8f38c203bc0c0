"""Repositories that show the distribution's libraries under their upstream labels."""

def _link_flags(ctx, pkg_config, spec):
    """Returns the -l flags of `spec`: any number of literal -l flags, then a pkg-config module."""
    words = spec.split(" ")
    module = words[-1]
    result = ctx.execute([pkg_config, "--libs-only-l", module])
    if result.return_code != 0:
        fail("\n\nThe library '%s' is missing. Run tools/setup, or: apt-get install %s\n\n%s" %
             (module, " ".join(ctx.attr.debian_packages), result.stderr))
    return words[:-1] + [flag for flag in result.stdout.strip().split(" ") if flag]

def _impl(ctx):
    pkg_config = ctx.which("pkg-config")
    if not pkg_config:
        fail("\n\npkg-config is missing. Run tools/setup, or: apt-get install pkg-config\n")

    # Linking reads the libraries behind Bazel's back. Their versions are an input of the link instead.
    result = ctx.execute(["dpkg-query", "--show"] + ctx.attr.debian_packages)
    versions = result.stdout if result.return_code == 0 else "not Debian packages\n"
    ctx.file("versions.lds", "/*\n%s*/\n" % versions)

    # The compiler finds the headers on its default path: `includes` would move /usr/include forward and
    # break #include_next. They are named here so that a package upgrade rebuilds what includes them.
    for header in ctx.attr.headers:
        ctx.symlink("/usr/include/" + header, "include/" + header)
    packages = {"": ["""
exports_files(["versions.lds"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    visibility = ["//visibility:public"],
)
"""]}

    for label, spec in ctx.attr.targets.items():
        package, _, name = label.partition(":")
        flags = ["-Wl,--push-state,--as-needed"] + _link_flags(ctx, pkg_config, spec) + ["-Wl,--pop-state"]
        packages.setdefault(package, []).append("""
cc_library(
    name = "{name}",
    linkopts = {flags},
    visibility = ["//visibility:public"],
    deps = [
        "//:headers",
        "//:versions.lds",
    ],
)
""".format(name = name, flags = repr(flags)))

    for package, rules in packages.items():
        ctx.file((package + "/" if package else "") + "BUILD.bazel", "".join(rules))
    ctx.file("WORKSPACE", "workspace(name = %s)\n" % repr(ctx.name))

system_repository = repository_rule(
    implementation = _impl,
    doc = "A repository over installed libraries. Each target depends on all headers of the repository.",
    attrs = {
        "debian_packages": attr.string_list(doc = "named in the message when something is missing"),
        "headers": attr.string_list(doc = "files and folders under /usr/include"),
        "targets": attr.string_dict(doc = "\"package:target\" -> \"[-lname ...] pkg-config-module\""),
    },
    environ = ["PKG_CONFIG_PATH"],
    local = True,
)
