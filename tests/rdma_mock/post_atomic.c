/* Posts an atomic operation on the adapter that the command line names, and prints the answer's
 * name. */
#include <dat2/dat_ib_extensions.h>
#include <dat2/udat.h>
#include <stdio.h>
#include <stdlib.h>

static void must(DAT_RETURN result, const char *call) {
  const char *major = "";
  const char *minor = "";
  if (result == DAT_SUCCESS) return;
  (void)dat_strerror(result, &major, &minor);
  fprintf(stderr, "%s: %s %s\n", call, major, minor);
  exit(1);
}

int main(int argc, char **argv) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE completions, connections;
  DAT_IA_HANDLE ia;
  DAT_PZ_HANDLE pz;
  DAT_EP_HANDLE ep;
  DAT_LMR_TRIPLET local = {0};
  DAT_RMR_TRIPLET remote = {0};
  DAT_DTO_COOKIE cookie = {0};
  const char *major = "";
  const char *minor = "";
  if (argc != 2) return 2;
  must(dat_ia_open(argv[1], 8, &async, &ia), "dat_ia_open");
  must(dat_pz_create(ia, &pz), "dat_pz_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &completions), "dat_evd_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connections),
       "dat_evd_create");
  must(dat_ep_create(ia, pz, completions, completions, connections, NULL, &ep), "dat_ep_create");
  local.segment_length = 8;
  remote.segment_length = 8;
  (void)dat_strerror(dat_ib_post_fetch_and_add(ep, 1, &local, cookie, &remote, 0), &major, &minor);
  puts(major);
  must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  return 0;
}
