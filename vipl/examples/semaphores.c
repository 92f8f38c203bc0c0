/*
 * semaphores SERVICE: a program that has functions sem_init, sem_wait, sem_post and sem_destroy of
 * its own, over System V semaphores and with other arguments than POSIX gives them. It is linked so
 * that every library finds its functions before the system's: a library that calls the system's by
 * these names lands here. Two processes exchange messages; the semaphore is passed with each of
 * them.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vialink.h"

#define MESSAGES 500
#define MAGIC 0x5e3a

static int the_semaphore = -1;

/* None of these is declared by a header that this program includes. */
extern int sem_init(int magic);
extern int sem_wait(int semaphore);
extern int sem_post(int semaphore);
extern int sem_destroy(int semaphore);

static void fail(const char *what) {
  fprintf(stderr, "semaphores: %s\n", what);
  if (the_semaphore >= 0) semctl(the_semaphore, 0, IPC_RMID); /* it would stay for ever */
  _exit(1);
}

static void must(const char *what, VIP_RETURN code) {
  if (code != VIP_SUCCESS) fail(what);
}

int sem_init(int magic) {
  if (magic != MAGIC) fail("sem_init was called by a stranger");
  return semget(IPC_PRIVATE, 1, 0600);
}

static void check(int semaphore) {
  if (semaphore != the_semaphore) fail("a semaphore was used by a stranger");
}

static int operate(int semaphore, int by) {
  struct sembuf operation;

  check(semaphore);
  operation.sem_num = 0;
  operation.sem_op = (short)by;
  operation.sem_flg = 0;
  if (semop(semaphore, &operation, 1) != 0) fail("the semaphore is gone");
  return 0;
}

int sem_wait(int semaphore) { return operate(semaphore, -1); }
int sem_post(int semaphore) { return operate(semaphore, 1); }

int sem_destroy(int semaphore) {
  check(semaphore);
  return semctl(semaphore, 0, IPC_RMID);
}

static void post_again(struct via_link *link, VIP_DESCRIPTOR *descriptor) {
  must("VipPostRecv", via_post_receive(link, descriptor));
}

/* The next message. */
static VIP_DESCRIPTOR *next(struct via_link *link) {
  VIP_DESCRIPTOR *received = NULL;

  while (received == NULL) must("via_next", via_next(link, 30000, &received));
  return received;
}

static void send_number(struct via_link *link, int number) {
  VIP_DESCRIPTOR *descriptor;

  while ((descriptor = via_take_send(link)) == NULL) {
    VIP_DESCRIPTOR *received;
    must("via_next", via_next(link, 30000, &received));
    if (received != NULL) fail("a message out of turn");
  }
  memcpy(via_data(descriptor), &number, sizeof number);
  must("VipPostSend", via_post_send(link, descriptor, sizeof number, NULL));
}

static void await_number(struct via_link *link, int number) {
  VIP_DESCRIPTOR *received = next(link);

  if (received->CS.Length != sizeof number ||
      memcmp(via_data(received), &number, sizeof number) != 0) {
    fail("a message is wrong");
  }
  post_again(link, received);
}

static void open_link(struct via_link *link, VIP_NIC_HANDLE *nic, union via_address *address,
                      unsigned long service) {
  VIP_NIC_ATTRIBUTES attributes;

  must("VipOpenNic", VipOpenNic("/dev/via_lo", nic));
  must("VipQueryNic", VipQueryNic(*nic, &attributes));
  must("via_open", via_open(link, *nic, 4, 64, 4, 64));
  via_set_address(address, attributes.LocalNicAddress, attributes.NicAddressLen, service);
}

static void child(unsigned long service) {
  struct via_link link;
  union via_address address;
  VIP_NIC_HANDLE nic;
  VIP_VI_ATTRIBUTES attributes;
  VIP_RETURN code;
  int i;

  open_link(&link, &nic, &address, service);
  do {
    code = VipConnectRequest(link.vi, &address.net, &address.net, 30000, &attributes);
  } while (code == VIP_NO_MATCH);
  must("VipConnectRequest", code);
  for (i = 0; i < MESSAGES; i++) {
    send_number(&link, i);
    sem_post(the_semaphore);
    await_number(&link, i + MESSAGES);
  }
  send_number(&link, -1);
  await_number(&link, -1);
  exit(0);
}

int main(int argc, char **argv) {
  struct via_link link;
  union via_address address, remote;
  VIP_NIC_HANDLE nic;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  unsigned long service;
  int i, status;
  pid_t pid;
  char *end;
  const int help = argc == 2 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0);

  if (argc == 2) service = strtoul(argv[1], &end, 10);
  if (argc != 2 || !isdigit((unsigned char)*argv[1]) || *end != '\0') {
    fputs("usage: semaphores SERVICE\n", help ? stdout : stderr);
    return help ? 0 : 2;
  }
  the_semaphore = sem_init(MAGIC);
  if (the_semaphore < 0) fail("semget");
  pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) child(service);

  open_link(&link, &nic, &address, service);
  must("VipConnectWait",
       VipConnectWait(nic, &address.net, 30000, &remote.net, &attributes, &connection));
  must("VipConnectAccept", VipConnectAccept(connection, link.vi));
  for (i = 0; i < MESSAGES; i++) {
    sem_wait(the_semaphore);
    await_number(&link, i);
    send_number(&link, i + MESSAGES);
  }
  await_number(&link, -1);
  send_number(&link, -1);
  if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail("the child failed");
  }
  via_close(&link);
  must("VipCloseNic", VipCloseNic(nic));
  if (sem_destroy(the_semaphore) != 0) fail("the semaphore is gone");
  printf("%d messages each way\n", MESSAGES);
  return 0;
}
