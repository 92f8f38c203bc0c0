// A library that registers "early0" while it is loaded, and has neither dat_provider_init nor
// dat_provider_fini.
#include <dat2/udat.h>
// Must come after udat.h.
#include <dat2/dat_registry.h>

static DAT_PROVIDER table;
static const DAT_PROVIDER* adapter = &table;

static DAT_RETURN Open(const DAT_NAME_PTR name, DAT_COUNT length, DAT_EVD_HANDLE* async,
                       DAT_IA_HANDLE* ia) {
  (void)name;
  (void)length;
  *async = DAT_HANDLE_NULL;
  *ia = (DAT_IA_HANDLE)&adapter;
  return DAT_SUCCESS;
}

static DAT_RETURN Close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags) {
  (void)ia;
  (void)flags;
  return DAT_SUCCESS;
}

__attribute__((constructor)) static void Register(void) {
  static const DAT_PROVIDER_INFO info = {"early0", 2, 0, DAT_FALSE};
  table.device_name = "early0";
  table.ia_open_func = Open;
  table.ia_close_func = Close;
  dat_registry_add_provider(&table, &info);
}
