/* One program that uses VIPL and uDAPL, in the version that VIADUCT_TEST_DAT names: 12 or 20. */
#if VIADUCT_TEST_DAT == 12
#include <dat/udat.h>
#elif VIADUCT_TEST_DAT == 20
#include <dat2/udat.h>
#endif
#include <vipl.h>

#if defined(__cplusplus)
static void agent(DAT_PVOID, DAT_EVD_HANDLE) {}
#else
static void agent(DAT_PVOID instance, DAT_EVD_HANDLE evd) {
  (void)instance;
  (void)evd;
}
#endif

int main(void) {
  DAT_OS_WAIT_PROXY_AGENT no_agent = DAT_OS_WAIT_PROXY_AGENT_NULL;
  DAT_EVD_HANDLE async_evd = DAT_EVD_ASYNC_EXISTS;
  DAT_PROVIDER_ATTR provider;
  DAT_IA_ATTR adapter;
  DAT_IA_HANDLE ia;
  DAT_CNO_HANDLE cno;
  VIP_NIC_HANDLE nic;
  char name[] = "soft0";

  if (dat_ia_open(name, 8, &async_evd, &ia) != DAT_SUCCESS) return 1;
  if (dat_ia_query(ia, &async_evd, DAT_IA_ALL, &adapter, DAT_PROVIDER_FIELD_ALL, &provider) !=
      DAT_SUCCESS) {
    return 2;
  }
  if (adapter.max_mtu_size < 32768 || adapter.max_rdma_read_per_ep < 1) return 3;
  if (!provider.evd_stream_merging_supported[1][3]) return 4;
  if (dat_cno_create(ia, no_agent, &cno) != DAT_SUCCESS) return 5;
  no_agent.proxy_agent_func = agent;
  if (DAT_GET_TYPE(dat_cno_modify_agent(cno, no_agent)) == DAT_INVALID_STATE) return 6;
  return VipOpenNic("nic0", &nic) == VIP_SUCCESS ? 0 : 7;
}
