// Functions of the test program that have the names of libc's.
#ifndef VIADUCT_TESTS_CONFORMANCE_VIPL_OWN_FUNCTIONS_H_
#define VIADUCT_TESTS_CONFORMANCE_VIPL_OWN_FUNCTIONS_H_

#ifdef __cplusplus
extern "C" {
#endif

// The name of the last one that our libraries have called in this process; "" if there is none.
const char *OwnFunctionCalled(void);

#ifdef __cplusplus
}
#endif

#endif  // VIADUCT_TESTS_CONFORMANCE_VIPL_OWN_FUNCTIONS_H_
