/*
 * A message-passing layer of the kind that programs brought along: processes with ranks 0 to
 * size-1, each connected to every other, one completion queue for all, and credits, so that no
 * message ever meets an empty receive queue. Messages between two ranks arrive in the order in
 * which they were sent. Used by one thread. Any failure is fatal: it is reported on standard error
 * and the process ends.
 */
#ifndef VIADUCT_VIPL_EXAMPLES_MP_H_
#define VIADUCT_VIPL_EXAMPLES_MP_H_

#include <vipl.h>

#define MP_MAX_BYTES 8192 /* of a message */
#define MP_MAX_SIZE 64    /* processes */
#define MP_ANY (-1)

/* Command line: PROGRAM JOB RANK HOST..., a host for each rank; JOB is any number that no other job
 * on these hosts has. Returns when this process is connected to all others. */
extern void mp_init(int argc, char **argv);
extern int mp_rank(void);
extern int mp_size(void);

/* Returns when the bytes may be changed again. */
extern void mp_send(int to, const void *data, unsigned length);

/* Waits for the oldest message from that rank or, with MP_ANY, from whichever has one. Returns the
 * sender's rank; `data` has room for MP_MAX_BYTES. */
extern int mp_receive(int from, void *data, unsigned *length);

/* Returns when every process has called it. */
extern void mp_barrier(void);

/* After a last barrier: ends all connections. */
extern void mp_finish(void);

/* Says what is wrong and ends the process. */
extern void mp_die(const char *what, VIP_RETURN code);

#endif /* VIADUCT_VIPL_EXAMPLES_MP_H_ */
