/* Code that defines VIP_KERNEL gets vipl.h without VIP_INFINITE. */
#include <vipl.h>

#ifdef VIP_INFINITE
#error "VIP_KERNEL hides VIP_INFINITE"
#endif
