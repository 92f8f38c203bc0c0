#include "tests/hotpath/system_calls.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF 0
#define PR_SYS_DISPATCH_ON 1
#endif

// The handler returns by a system call, when counting is on again. So this call is made here, in
// the address range that the kernel is told to let pass.
extern "C" void ViaductHotpathReturn();
extern "C" void ViaductHotpathReturnEnd();
asm(R"(
.text
.global ViaductHotpathReturn
.hidden ViaductHotpathReturn
.type ViaductHotpathReturn, @function
ViaductHotpathReturn:
  mov $15, %eax
  syscall
.global ViaductHotpathReturnEnd
.hidden ViaductHotpathReturnEnd
ViaductHotpathReturnEnd:
  ud2
)");

namespace viaduct::hotpath {
namespace {

constexpr char kLetPass = 0;
constexpr char kSignal = 1;
constexpr int kKept = 16;

volatile char selector = kLetPass;
volatile int count = 0;
long calls[kKept];

// The kernel's own sigaction, with the restorer that libc hides.
struct KernelSigaction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};
constexpr unsigned long kRestorer = 0x04000000;

long MakeCall(const gregset_t& registers) {
  register long r10 asm("r10") = registers[REG_R10];
  register long r8 asm("r8") = registers[REG_R8];
  register long r9 asm("r9") = registers[REG_R9];
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(registers[REG_RAX]), "D"(registers[REG_RDI]), "S"(registers[REG_RSI]),
                 "d"(registers[REG_RDX]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

void OnCall(int, siginfo_t* info, void* context) {
  selector = kLetPass;
  if (count < kKept) calls[count] = info->si_syscall;
  count = count + 1;
  gregset_t& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_RAX] = info->si_syscall;
  registers[REG_RAX] = MakeCall(registers);
  selector = kSignal;
}

}  // namespace

SystemCallCounter::SystemCallCounter() {
  KernelSigaction action = {OnCall, SA_SIGINFO | kRestorer, ViaductHotpathReturn, 0};
  const auto start = reinterpret_cast<unsigned long>(&ViaductHotpathReturn);
  const auto end = reinterpret_cast<unsigned long>(&ViaductHotpathReturnEnd);
  // The kernel compares the address after the instruction, so the range is one byte longer.
  supported_ = syscall(SYS_rt_sigaction, SIGSYS, &action, nullptr, sizeof action.mask) == 0 &&
               prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, start, end + 1 - start,
                     &selector) == 0;
}

SystemCallCounter::~SystemCallCounter() {
  selector = kLetPass;
  prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0);
  signal(SIGSYS, SIG_DFL);
}

void SystemCallCounter::Start() {
  count = 0;
  selector = kSignal;
}

int SystemCallCounter::Stop() {
  selector = kLetPass;
  return count;
}

std::string SystemCallCounter::Calls() {
  const int all = count;
  std::string text = "system calls:";
  for (int i = 0; i < std::min(all, kKept); ++i) text += " " + std::to_string(calls[i]);
  return all > kKept ? text + " ..." : text;
}

}  // namespace viaduct::hotpath
