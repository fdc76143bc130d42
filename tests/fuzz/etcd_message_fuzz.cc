// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/messages.h"
#include "fuzz/fuzz_input.h"
#include "libs/base64/base64.h"

#include <algorithm>
#include <string_view>

namespace {

using namespace baton;
using fuzz::require;

template <class T>
void require_words(const etcd::Decoded<T>& decoded) {
  require(decoded || !decoded.error().empty(), "a refusal has words");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto has_key = [](const etcd::KeyValue& entry) { return !entry.key.empty(); };

  const auto page = etcd::decode_range(body);
  require_words(page);
  if (page) require(std::ranges::all_of(page->entries, has_key), "every entry has a key");

  const auto message = etcd::decode_watch(body);
  require_words(message);
  if (message) {
    require(std::ranges::all_of(message->events, has_key, &etcd::Event::entry),
            "every event has a key");
  }

  require_words(etcd::decode_put(body));
  require_words(etcd::decode_keep_alive(body));
  require_words(etcd::decode_time_to_live(body));
  require_words(etcd::decode_done(body));
  const auto lease = etcd::decode_grant(body);
  require_words(lease);
  if (lease) require(lease->id != 0 && lease->ttl.count() > 0, "a lease can be kept alive");
  const auto token = etcd::decode_token(body);
  require_words(token);
  if (token) {
    require(std::ranges::none_of(*token, [](char c) { return c <= ' ' || c > '~'; }),
            "a token is no more than one header's value");
  }

  if (const auto refusal = etcd::find_refusal(body)) {
    require(!refusal->message.empty(), "a refusal of etcd has words");
    etcd::reason_of(*refusal);
  }

  // What is decoded is what stood there, up to bits that mean nothing.
  if (const auto bytes = base64::decode(body)) {
    require(base64::decode(base64::encode(*bytes)) == *bytes, "base64 is kept");
  }
  require(base64::decode(base64::encode(body)) == body, "bytes survive base64");
  const auto range = etcd::prefix_range(body);
  require(range.end == std::string_view("\0", 1) || range.begin < range.end,
          "a prefix has a range");
  return 0;
}
