// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "wire/http_message.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace baton::http {

// Role. Admits clients by API key. Holds digests only, and compares every one of them in constant
//   time, so the time an answer takes says nothing about a key.
// Confinement. Immutable, any thread.
class ApiKeys {
 public:
  explicit ApiKeys(const std::vector<std::string>& keys);

  bool empty() const { return digests_.empty(); }
  // Admits every client if there are no keys (0). Otherwise `Authorization: Bearer KEY` must name
  // one; returns its number, from 1.
  Result<std::size_t> admit(const wire::Headers& headers) const;
  // A name that does not reveal the key: "key 2". Empty for 0.
  static std::string name_of(std::size_t key);

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest(std::string_view key);
  std::vector<Digest> digests_;
};

}  // namespace baton::http
