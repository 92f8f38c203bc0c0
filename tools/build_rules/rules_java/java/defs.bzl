"""Stand-in for @rules_java: the Java rules built into Bazel under the names @bazel_tools loads."""

java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_runtime = native.java_runtime
java_toolchain = native.java_toolchain
