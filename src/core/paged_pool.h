// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

namespace baton {

// Role. Allocates objects next to each other, for scans over thousands of them. Scattered over the
//   memory, finding them would take longer than reading them.
// Confinement. One thread at a time.
// Lifetime. The objects outlive it. Memory is given back in pages, each with the last of its objects.
template <class T>
class PagedPool {
 public:
  std::shared_ptr<T> make() {
    auto page = page_.lock();
    if (!page || used_ == page->size()) {
      page = std::make_shared<Page>();
      page_ = page;
      used_ = 0;
    }
    T* const next = &(*page)[used_++];
    return {std::move(page), next};
  }

 private:
  static constexpr std::size_t kPageBytes = 16'384;
  using Page = std::array<T, std::max<std::size_t>(1, kPageBytes / sizeof(T))>;

  std::weak_ptr<Page> page_;  // the last one
  std::size_t used_ = 0;
};

}  // namespace baton
