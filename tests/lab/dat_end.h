/* One end of the conversations of this folder, as a DAT program: an adapter, its queues, one
 * region. Any failure ends the program with a line that says what has failed. */
#ifndef TESTS_LAB_DAT_END_H
#define TESTS_LAB_DAT_END_H

#include <dat2/udat.h>
#include <stddef.h>
#include <stdint.h>

enum { kPatience = 20000000 };

extern DAT_IA_HANDLE ia;
extern DAT_EVD_HANDLE requests, connections, receives, sends;
extern DAT_RMR_CONTEXT remote_key; /* of the region */

void must(DAT_RETURN result, const char *what);

/* Opens the adapter, its queues, and a region that allows everything to both sides. */
void open_adapter(char *name, void *memory, size_t bytes);
DAT_EP_HANDLE make_endpoint(void);

DAT_EVENT next(DAT_EVD_HANDLE evd, const char *what);
/* Waits for the next event of the connections, which must be this one. */
DAT_EVENT await_connection(DAT_EVENT_NUMBER number);
/* Waits for the next transfer, which must succeed; returns how much it moved. */
DAT_VLEN await_transfer(DAT_EVD_HANDLE evd, const char *what);

void post_receive(DAT_EP_HANDLE endpoint, void *start, uint32_t bytes);
void post_send(DAT_EP_HANDLE endpoint, void *start, uint32_t bytes);
enum direction { kRead, kWrite };
/* A transfer between `here` and the peer's memory; move returns when it is done. */
void start_moving(DAT_EP_HANDLE endpoint, enum direction direction, void *here, uint32_t bytes,
                  uint64_t there, uint32_t key);
void move(DAT_EP_HANDLE endpoint, enum direction direction, void *here, uint32_t bytes,
          uint64_t there, uint32_t key);

void start_connecting(DAT_EP_HANDLE endpoint, const char *host, DAT_CONN_QUAL port,
                      DAT_TIMEOUT patience, DAT_COUNT bytes, void *private_data);

#endif
