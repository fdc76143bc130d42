// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace baton::jinja {

// Sorts and keeps the order of equals. Unlike the standard's, it stays within bounds whatever the
// comparison says: values from a request may have no consistent order.
template <class T, class Less>
void merge_sort(std::vector<T>& items, Less less) {
  std::vector<T> merged(items.size());
  for (std::size_t width = 1; width < items.size(); width *= 2) {
    for (std::size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, items.size());
      const std::size_t end = std::min(begin + 2 * width, items.size());
      std::size_t left = begin;
      std::size_t right = middle;
      for (std::size_t at = begin; at < end; ++at) {
        const bool from_right = right < end && (left == middle || less(items[right], items[left]));
        merged[at] = std::move(items[from_right ? right++ : left++]);
      }
    }
    items.swap(merged);
  }
}

}  // namespace baton::jinja
