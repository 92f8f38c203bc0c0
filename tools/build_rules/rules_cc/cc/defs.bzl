"""Stand-in for @rules_cc: the C++ rules built into Bazel under the names @bazel_tools loads."""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_libc_top_alias = native.cc_libc_top_alias
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
objc_library = native.objc_library
