// The text of a small file, such as a table that an administrator writes.
#ifndef VIADUCT_VERBS_BASE_FILE_TEXT_H_
#define VIADUCT_VERBS_BASE_FILE_TEXT_H_

#include <cstddef>
#include <string>

namespace viaduct::verbs {

inline constexpr size_t kMostFileBytes = size_t{4} << 20;

// Appends the file to `text`. Returns 0 or an errno: ENOENT if there is no file, EFBIG beyond
// kMostFileBytes. Uses no stream, since streams hardly report a lack of descriptors or memory.
// Throws std::bad_alloc.
int ReadFileText(const std::string& path, std::string* text);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_FILE_TEXT_H_
