// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <limits>

namespace baton::etcd {
namespace {

constexpr std::size_t kGroup = 4;       // characters …
constexpr std::size_t kGroupBytes = 3;  // … for so many bytes
// OpenSSL counts in int.
constexpr std::size_t kLongest = std::numeric_limits<int>::max() / 2;

bool is_digit(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/';
}

unsigned char* unsigned_data(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}
const unsigned char* unsigned_data(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  const std::size_t size = (bytes.size() + kGroupBytes - 1) / kGroupBytes * kGroup;
  std::string text(size + 1, '\0');  // OpenSSL writes a zero behind it
  EVP_EncodeBlock(unsigned_data(text), unsigned_data(bytes), static_cast<int>(bytes.size()));
  text.resize(size);
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty()) return std::string();
  if (text.size() % kGroup != 0 || text.size() > kLongest) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  // OpenSSL would take blanks, and padding in the middle.
  if (!std::ranges::all_of(text.substr(0, text.size() - padding), is_digit)) return std::nullopt;
  std::string bytes(text.size() / kGroup * kGroupBytes, '\0');
  if (EVP_DecodeBlock(unsigned_data(bytes), unsigned_data(text), static_cast<int>(text.size())) < 0)
    return std::nullopt;
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace baton::etcd
