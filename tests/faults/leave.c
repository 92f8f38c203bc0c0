/* leave return|exit|exit-in-thread PORT: connects a VI to another of its own, opens a DAT adapter
 * that listens at PORT, blocks a thread in each library, and leaves with status 7. Other status:
 * why. */
#include <dat2/udat.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vipl.h>

#define CHECK(condition, status) \
  do {                           \
    if (!(condition)) {          \
      perror(#condition);        \
      _exit(status);             \
    }                            \
  } while (0)

static VIP_NIC_HANDLE nic;
static VIP_VI_HANDLE vis[2];
static VIP_DESCRIPTOR* receive;
static DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

/* A VIP_NET_ADDRESS with room for its two parts. */
union address {
  VIP_NET_ADDRESS net;
  unsigned char bytes[64];
};

static void fill_address(union address* to) {
  VIP_NIC_ATTRIBUTES attributes;
  CHECK(VipQueryNic(nic, &attributes) == VIP_SUCCESS, 10);
  memset(to, 0, sizeof *to);
  to->net.HostAddressLen = attributes.NicAddressLen;
  to->net.DiscriminatorLen = 5;
  memcpy(to->net.HostAddress, attributes.LocalNicAddress, attributes.NicAddressLen);
  memcpy(to->net.HostAddress + attributes.NicAddressLen, "leave", 5);
}

static void* accept_one(void* unused) {
  union address local, remote;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  fill_address(&local);
  memset(&remote, 0, sizeof remote);
  CHECK(
      VipConnectWait(nic, &local.net, 20000, &remote.net, &attributes, &connection) == VIP_SUCCESS,
      11);
  CHECK(VipConnectAccept(connection, vis[1]) == VIP_SUCCESS, 12);
  return unused;
}

/* The kernel's numbers of the threads that block; 0: the thread has not begun. */
enum { MESSAGE, EVENT, THREADS };
static int threads[THREADS];

static void say_begun(int which) {
  __atomic_store_n(&threads[which], (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

static int sleeps(int which) {
  const int thread = __atomic_load_n(&threads[which], __ATOMIC_ACQUIRE);
  char path[64], line[256] = "";
  const char* state;
  FILE* stat;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  stat = thread != 0 ? fopen(path, "r") : NULL;
  if (stat == NULL) return 0;
  if (fgets(line, sizeof line, stat) == NULL) line[0] = '\0';
  fclose(stat);
  state = strrchr(line, ')');
  return state != NULL && state[1] == ' ' && state[2] == 'S';
}

/* A single check may find a thread that sleeps on a lock. */
static void await_asleep(void) {
  int looks = 0;
  while (looks < 5) {
    looks = sleeps(MESSAGE) && sleeps(EVENT) ? looks + 1 : 0;
    usleep(1000);
  }
}

static void* wait_for_message(void* unused) {
  VIP_DESCRIPTOR* done;
  say_begun(MESSAGE);
  VipRecvWait(vis[0], VIP_INFINITE, &done);
  return unused;
}

static void* wait_for_event(void* unused) {
  DAT_EVENT event;
  DAT_COUNT more;
  say_begun(EVENT);
  dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
  return unused;
}

static void* leave(void* unused) {
  exit(7);
  return unused;
}

static void connect_to_self(void) {
  VIP_VI_ATTRIBUTES attributes, remote_attributes;
  union address local, remote;
  VIP_RETURN result;
  pthread_t thread;
  int i;
  memset(&attributes, 0, sizeof attributes);
  attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  attributes.MaxTransferSize = 4096;
  for (i = 0; i < 2; ++i) {
    CHECK(VipCreateVi(nic, &attributes, NULL, NULL, &vis[i]) == VIP_SUCCESS, 13);
  }
  CHECK(pthread_create(&thread, NULL, accept_one, NULL) == 0, 14);
  fill_address(&local);
  fill_address(&remote);
  do {
    result = VipConnectRequest(vis[0], &local.net, &remote.net, 20000, &remote_attributes);
  } while (result == VIP_NO_MATCH);
  CHECK(result == VIP_SUCCESS, 15);
  CHECK(pthread_join(thread, NULL) == 0, 16);
}

static void post_receive(void) {
  VIP_MEM_ATTRIBUTES attributes;
  VIP_MEM_HANDLE memory;
  void* bytes;
  memset(&attributes, 0, sizeof attributes);
  CHECK(posix_memalign(&bytes, 64, 8192) == 0, 17);
  memset(bytes, 0, 8192);
  CHECK(VipRegisterMem(nic, bytes, 8192, &attributes, &memory) == VIP_SUCCESS, 18);
  receive = bytes;
  CHECK(VipPostRecv(vis[0], receive, memory) == VIP_SUCCESS, 19);
}

int main(int argc, char** argv) {
  char adapter[] = "soft0";
  DAT_IA_HANDLE ia;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp;
  pthread_t thread;
  CHECK(argc == 3, 2);
  CHECK(VipOpenNic("nic0", &nic) == VIP_SUCCESS, 3);
  connect_to_self();
  post_receive();
  CHECK(dat_ia_open(adapter, 8, &async, &ia) == DAT_SUCCESS, 4);
  CHECK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd) == DAT_SUCCESS, 5);
  CHECK(dat_psp_create(ia, (DAT_CONN_QUAL)atoi(argv[2]), evd, DAT_PSP_CONSUMER_FLAG, &psp) ==
            DAT_SUCCESS,
        6);
  CHECK(pthread_create(&thread, NULL, wait_for_message, NULL) == 0, 20);
  CHECK(pthread_create(&thread, NULL, wait_for_event, NULL) == 0, 21);
  await_asleep();
  if (strcmp(argv[1], "exit") == 0) exit(7);
  if (strcmp(argv[1], "exit-in-thread") == 0) {
    CHECK(pthread_create(&thread, NULL, leave, NULL) == 0, 22);
    for (;;) pause();
  }
  return 7;
}
