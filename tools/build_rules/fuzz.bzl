"""Fuzzers that ordinary builds replay over their corpus."""

def fuzz_target(name, srcs, corpus, deps, args = [], data = []):
    """Defines `name` (libFuzzer; --config=fuzz) and `name`_corpus_test (any configuration).

    Args:
      name: by custom x_fuzz, beside x.cc.
      srcs: sources that define LLVMFuzzerTestOneInput.
      corpus: the checked-in inputs: glob(["x_fuzz_corpus/*"]).
      deps: libraries under test.
      args: further arguments of the corpus test.
      data: further run-time files of the corpus test.
    """
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        linkopts = ["-fsanitize=fuzzer"],
        tags = [
            "fuzz",
            "manual",
        ],
        deps = deps,
    )
    native.cc_test(
        name = name + "_corpus_test",
        size = "small",
        srcs = srcs,
        args = ["$(locations %s)" % f for f in corpus] + args,
        data = corpus + data,
        deps = deps + ["//tools/build_rules:replay_main"],
    )
