// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/api_keys.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

namespace baton::http {
namespace {

constexpr std::string_view kScheme = "bearer ";

}  // namespace

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) digests_.push_back(digest(key));
}

ApiKeys::Digest ApiKeys::digest(std::string_view key) {
  Digest result;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), result.data());
  return result;
}

Result<std::size_t> ApiKeys::admit(const wire::Headers& headers) const {
  if (digests_.empty()) return 0;
  const auto authorization = headers.find("authorization");
  if (!authorization) {
    return fail(Errc::Unauthorized,
                "no API key was given: send it as \"Authorization: Bearer KEY\"");
  }
  const bool bearer = authorization->size() > kScheme.size() &&
                      wire::equal_ignoring_case(authorization->substr(0, kScheme.size()), kScheme);
  const Digest given = digest(bearer ? authorization->substr(kScheme.size()) : std::string_view());
  std::size_t which = 0;  // from 1
  for (std::size_t i = 0; i < digests_.size(); ++i) {
    const bool same = CRYPTO_memcmp(digests_[i].data(), given.data(), given.size()) == 0;
    which = std::max(which, static_cast<std::size_t>(same) * (i + 1));
  }
  if (which == 0) return fail(Errc::Unauthorized, "the API key is not valid");
  return which;
}

std::string ApiKeys::name_of(std::size_t key) {
  return key == 0 ? std::string() : fmt::format("key {}", key);
}

}  // namespace baton::http
