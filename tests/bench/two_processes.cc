#include "tests/bench/two_processes.h"

#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace viaduct::bench {
namespace {

void Pin(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) perror("sched_setaffinity");
}

void GiveUp(int) {
  static constexpr char kMessage[] = "no result in time: given up\n";
  (void)!write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(1);
}

}  // namespace

TwoProcesses::TwoProcesses(const Cpus& cpus, int seconds) : parent_(getpid()) {
  void* page =
      mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  page_ = static_cast<Page*>(page);
  fflush(nullptr);
  child_ = fork();
  if (child_ < 0) {
    perror("fork");
    exit(1);
  }
  signal(SIGALRM, GiveUp);
  alarm(static_cast<unsigned>(seconds));
  Pin(parent() ? cpus.parent : cpus.child);
  if (parent()) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent_) _exit(1);
}

TwoProcesses::~TwoProcesses() {
  if (!parent()) _exit(0);
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

void TwoProcesses::KillChild() { kill(child_, SIGKILL); }

bool TwoProcesses::OtherHasEnded() {
  return parent() ? waitpid(child_, nullptr, WNOHANG) != 0 : getppid() != parent_;
}

void TwoProcesses::Meet() {
  const uint64_t times = page_->met[Index()].fetch_add(1) + 1;
  const auto has_come = [&] { return page_->met[1 - Index()].load() >= times; };
  while (!has_come()) {
    if (OtherHasEnded() && !has_come()) exit(1);
    usleep(100);
  }
}

uint16_t FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    perror("FreePort");
    exit(1);
  }
  close(fd);
  return ntohs(address.sin_port);
}

}  // namespace viaduct::bench
