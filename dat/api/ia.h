// How an adapter is opened once its entry is found.
#ifndef VIADUCT_DAT_API_IA_H_
#define VIADUCT_DAT_API_IA_H_

#include "dat/api/abi.h"
#include "dat/core/interface_adapter.h"
#include "dat/registry/registry.h"

namespace viaduct::dat {

// Opens an entry that the engine serves. The adapter keeps a pointer to the entry, which must
// outlive it.
DAT_RETURN OpenOnEngine(const registry::Entry& entry, DAT_COUNT async_evd_min_qlen,
                        DAT_EVD_HANDLE* async_evd_handle, DAT_IA_HANDLE* ia_handle);

// The entry that an adapter was opened by: its face word.
inline const registry::Entry& EntryOf(const core::InterfaceAdapter& adapter) {
  return *reinterpret_cast<const registry::Entry*>(adapter.face_word());
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_IA_H_
