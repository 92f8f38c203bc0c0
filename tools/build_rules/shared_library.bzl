"""A versioned shared library with a SONAME, an export map and a RUNPATH of $ORIGIN."""

def shared_library(
        name,
        soname,
        version_script,
        deps,
        hdrs = [],
        hdrs_deps = [],
        shared = {},
        linkopts = [],
        testonly = False,
        visibility = None):
    """Builds the file `soname`, and a cc_library `name` that links a program against it.

    The libraries in `shared` are named on the link line by path and never as deps: a dep on their static
    targets would copy their code into this library, and a dep on their wrappers would add Bazel's own
    folders to the RUNPATH. So the file can be installed as it is.

    Args:
      name: label of the wrapper, for programs and tests.
      soname: label, file name and SONAME, such as libdat2.so.2.
      version_script: label of the linker's version script, which may be generated.
      deps: cc_library targets whose objects go in. Those that define exports are alwayslink.
      hdrs: public headers of the wrapper.
      hdrs_deps: header targets of the wrapper.
      shared: {label of another file made here: label of its wrapper}.
      linkopts: further link flags, such as -Wl,-Bsymbolic-functions or -Wl,-z,nodelete.
      testonly: as everywhere.
      visibility: of both targets.
    """
    native.cc_binary(
        name = soname,
        testonly = testonly,
        additional_linker_inputs = [version_script] + shared.keys(),
        linkopts = [
            "-Wl,-soname," + soname,
            "-Wl,--version-script,$(location %s)" % version_script,
            "-Wl,-rpath,$$ORIGIN",
            "-Wl,--enable-new-dtags",
        ] + ["$(location %s)" % library for library in shared.keys()] + linkopts + select({
            # clang leaves a sanitizer's runtime out of shared libraries.
            "//tools/build_rules:sanitizer": [],
            "//conditions:default": ["-Wl,-z,defs"],
        }),
        linkshared = True,
        visibility = visibility,
        deps = deps,
    )
    native.cc_library(
        name = name,
        testonly = testonly,
        srcs = [soname],
        hdrs = hdrs,
        # `bazel coverage` passes a library's notes on through data only.
        data = [soname],
        visibility = visibility,
        deps = hdrs_deps + shared.values(),
    )
