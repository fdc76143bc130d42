// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::scheduling {

// Role. Says in which class a request waits.
// Confinement. Any thread: it never changes.
class Classes {
 public:
  // Requires: there is a class, and the buckets ascend.
  explicit Classes(const config::Queue& config);

  // The index of the class for a request's policy class. The name of a class without family is that
  // class; the name of a family is its class for so many new tokens; anything else counts as the
  // default family or, without families, the first class.
  std::size_t resolve(std::string_view policy_class, std::uint64_t uncached_tokens) const;

 private:
  using Members = std::vector<std::pair<std::uint64_t, std::size_t>>;  // from so many tokens; class

  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::string, Members, std::less<>> families_;
  std::string default_family_;
};

}  // namespace baton::scheduling
