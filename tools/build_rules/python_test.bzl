"""Tests written in Python, without a Python toolchain: Debian's python3 runs them."""

def python_test(name, src, data = [], env = {}, **kwargs):
    """Runs `src`, which is executable and starts with #!/usr/bin/env python3.

    Modules are imported by their path from the top of the repository: `from tools import count_tests`.
    A test that may skip something ends with python_main.main() of this folder, which reports it.

    Args:
      name: target name, x_test.
      src: the program.
      data: modules that it imports and files that it reads.
      env: further environment variables.
      **kwargs: of any test.
    """
    environment = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": ".",
    }
    environment.update(env)
    native.sh_test(
        name = name,
        srcs = [src],
        data = data + ["//tools/build_rules:python_main.py"],
        env = environment,
        **kwargs
    )
