"""Functions of libc that the libraries call and a program may have of the same name."""

# A shared library's own references go to libc_names.cc, whose names nobody else has. Programs of the time knew nothing
# of sockets where they called a network library, and the executable's function comes before libc's for every library.
# Under a sanitizer they go where its interceptors are.
LIBC_NAMES_LINKOPTS = select({
    "//tools/build_rules:sanitizer": [],
    "//conditions:default": ["-Wl,--wrap=" + name for name in [
        "accept4",
        "bind",
        "close",
        "connect",
        "getrandom",
        "gettid",
        "listen",
        "open",
        "poll",
        "read",
        "recv",
        "recvmsg",
        "send",
        "sendmsg",
        "shutdown",
        "socket",
    ]],
})
