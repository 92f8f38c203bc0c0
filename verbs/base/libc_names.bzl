"""Functions of libc that the libraries call and a program may have of the same name."""

# A shared library's own references go to libc_names.cc, whose names nobody else has. Old programs called a network
# library and knew nothing of sockets, and for every library the executable's function comes before libc's.
# Under a sanitizer the references go to its interceptors.
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
