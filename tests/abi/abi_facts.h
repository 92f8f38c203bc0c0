#ifndef VIADUCT_TESTS_ABI_ABI_FACTS_H_
#define VIADUCT_TESTS_ABI_ABI_FACTS_H_

/*
 * Turns the lines of the fact tables (*.inc) into checks at compile time, as C and as C++ of any
 * age. A wrong line gives "size of array 'viaduct_abi_fact' is negative" or "conflicting types" at
 * that line of the table.
 *
 *   VALUE(expression, value)            an enumerator or macro has this value
 *   SIZE(type, size)                    LP64
 *   SIZES(type, lp64, ilp32)
 *   OFFSET(type, member, offset)        LP64
 *   OFFSETS(type, member, lp64, ilp32)
 *   FUNCTION(result, name, parameters)  a function has exactly this type
 *   SLOT(table, result, member, parameters)  a member is a pointer to such a function
 */
#include <stddef.h>

#define VIADUCT_ABI_FACT(holds) extern char viaduct_abi_fact[(holds) ? 1 : -1];
#define VIADUCT_ABI_BY_POINTER(lp64, ilp32) (sizeof(void*) == 8 ? (lp64) : (ilp32))

#define VALUE(expression, value) \
  VIADUCT_ABI_FACT((unsigned long long)(expression) == (unsigned long long)(value))
#define SIZE(type, size) VIADUCT_ABI_FACT(sizeof(type) == (size))
#define SIZES(type, lp64, ilp32) SIZE(type, VIADUCT_ABI_BY_POINTER(lp64, ilp32))
#define OFFSET(type, member, offset) VIADUCT_ABI_FACT(offsetof(type, member) == (offset))
#define OFFSETS(type, member, lp64, ilp32) OFFSET(type, member, VIADUCT_ABI_BY_POINTER(lp64, ilp32))

/* Declaring one thing twice is an error unless both types are the same. */
#define FUNCTION(result, name, parameters) extern result name parameters;
#define SLOT(table, result, member, parameters)         \
  extern result(*viaduct_abi_slot_##member) parameters; \
  extern __typeof__(((table*)0)->member) viaduct_abi_slot_##member;

#endif /* VIADUCT_TESTS_ABI_ABI_FACTS_H_ */
