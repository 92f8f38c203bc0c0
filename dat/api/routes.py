#!/usr/bin/env python3
"""Writes the functions that programs and registries call.

Usage: routes.py exports MAP HEADER...      the functions that a library exports, all in its map
       routes.py table MAP HEADER...        the same functions as a provider's table

The map and the headers say everything: a function of the interface is defined in viaduct::dat with C++ linkage,
declared in a header under its name, named in the map when it is complete, and has a slot in struct dat_provider.
"""
import re
import sys

# What is not a matter of one call passed on: route.cc has them.
BY_HAND = {"dat_ia_close", "dat_extension_op"}


def read(path):
    with open(path, encoding="utf-8") as stream:
        return re.sub(r"/\*.*?\*/", "", stream.read(), flags=re.S)


def functions_of(map_path):
    return re.findall(r"^\s*(dats?_\w+);", read(map_path), re.M)


def prototypes(headers):
    """{name: [(type, name), ...]} with arrays as they are written."""
    found = {}
    for header in headers:
        for name, text in re.findall(r"extern\s+DAT_RETURN\s+DAT_API\s+(\w+)\((.*?)\);", read(header), re.S):
            found[name] = " ".join(re.sub(r"\b(IN|OUT|INOUT)\b", "", text).split())
    return found


def parameter_names(parameters):
    names = []
    depth = 0
    start = 0
    for at, character in enumerate(parameters + ","):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parameter = parameters[start:at]
            array = re.search(r"\((\w+)\[\]\)", parameter)
            names.append(array.group(1) if array else re.search(r"(\w+)\s*$", parameter).group(1))
            start = at + 1
    return names


def slots(headers):
    """The function slots of struct dat_provider in order."""
    for header in headers:
        body = re.search(r"struct dat_provider \{(.*?)\};", read(header), re.S)
        if body:
            return re.findall(r"(\w+)_func;", body.group(1))
    sys.exit("routes.py: no header has struct dat_provider")


def write_exports(names, headers):
    known = prototypes(headers)
    has_slot = {"dat_" + slot for slot in slots(headers)}
    print('#include "dat/api/route.h"\n\nnamespace viaduct::dat {\n')
    for name in names:
        if name not in BY_HAND:
            print("DAT_RETURN %s(%s);" % (name, known[name]))
    print("\n}  // namespace viaduct::dat\n")
    for name in names:
        if name in BY_HAND:
            continue
        arguments = ", ".join(parameter_names(known[name]))
        call = "viaduct::dat::" + name
        if name in has_slot:
            call = "viaduct::dat::Route<&dat_provider::%s_func, &%s>" % (name[len("dat_"):], call)
        print('extern "C" VIADUCT_DAT_VISIBLE DAT_RETURN %s(%s) {\n  return %s(%s);\n}' %
              (name, known[name], call, arguments))


def write_table(names, headers):
    print('#include "dat/api/provider_table.h"\n\nnamespace viaduct::dat {\n')
    known = prototypes(headers)
    filled = []
    for slot in slots(headers):
        name = "dat_" + slot
        if name in names:
            print("DAT_RETURN %s(%s);" % (name, known[name]))
            filled.append((slot, name))
    # What dat_extension_op does, with its arguments in a list.
    print("DAT_RETURN HandleExtendedOp(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list arguments);")
    filled.append(("handle_extendedop", "HandleExtendedOp"))
    print("\nvoid FillTable(DAT_PROVIDER* table) {")
    for slot, name in filled:
        print("  table->%s_func = %s;" % (slot, name))
    print("}\n\n}  // namespace viaduct::dat")


if __name__ == "__main__":
    {"exports": write_exports, "table": write_table}[sys.argv[1]](functions_of(sys.argv[2]), sys.argv[3:])
