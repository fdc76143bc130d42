// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "net/descriptor_budget.h"

#include <sys/resource.h>
#include <unistd.h>

namespace baton::test {

// While it lives, this process gets no further descriptors; those it has stay open.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const auto free = net::lowest_free_descriptor(STDERR_FILENO);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(free.value_or(0));
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace baton::test
