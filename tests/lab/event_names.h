/* The names of connection events. */
#ifndef TESTS_LAB_EVENT_NAMES_H
#define TESTS_LAB_EVENT_NAMES_H

#include <dat2/udat.h>

const char *name_of_event(DAT_EVENT_NUMBER number);

#endif
