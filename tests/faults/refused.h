// What a life that ends early throws.
#ifndef VIADUCT_TESTS_FAULTS_REFUSED_H_
#define VIADUCT_TESTS_FAULTS_REFUSED_H_

#include <stdexcept>

namespace viaduct::tests {

// A life may throw it only if a call has failed.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_REFUSED_H_
